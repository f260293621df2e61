from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from tests.api.control_plane import Edge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def edge() -> AsyncIterator[Edge]:
    """One server for the parts of a control plane."""
    async with Edge().running() as running:
        yield running
