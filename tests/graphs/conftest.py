from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.graphs.deployment import Deployment, running_deployment, settings, shop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def deployment(database: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with running_deployment(database, settings(tmp_path / "home")) as it:
        yield it


@pytest.fixture
async def duck(deployment: Deployment, tmp_path: Path) -> int:
    """A DuckDB source with a small shop, by its number."""
    return await deployment.source("duckdb", shop(tmp_path))
