from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.graphs.stand import Stand, settings, shop, standing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def stand(database: str, tmp_path: Path) -> AsyncIterator[Stand]:
    async with standing(database, settings(tmp_path / "home")) as it:
        yield it


@pytest.fixture
async def duck(stand: Stand, tmp_path: Path) -> int:
    """A DuckDB source with a small shop, by its number."""
    return await stand.source("duckdb", shop(tmp_path))
