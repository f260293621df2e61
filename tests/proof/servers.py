"""The oldest PostgreSQL that we support, beside the one that this run uses."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from penstock.kit.postgres import Cluster, ClusterSettings, locate
from penstock.kit.postgres.errors import PostgresMissing
from tests.conftest import FAST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

OLDEST = "15"


@asynccontextmanager
async def oldest_server(folder: Path) -> AsyncIterator[Cluster]:
    """A running server; the test is skipped where there is none, or where the whole run is on it already."""
    if os.environ.get("PENSTOCK_TEST_PG") == OLDEST:
        pytest.skip(f"the whole run is on PostgreSQL {OLDEST}")
    try:
        binaries = locate(OLDEST)
    except PostgresMissing as e:
        pytest.skip(str(e))
    async with Cluster(folder, binaries, settings=ClusterSettings(server=FAST)) as cluster:
        yield cluster
