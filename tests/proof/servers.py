"""The oldest PostgreSQL that we support, beside the one that this run uses."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from penstock.kit.postgres import Cluster, ClusterSettings
from tests.conftest import FAST
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def oldest_server(folder: Path) -> AsyncIterator[Cluster]:
    """A running server; the test is skipped where the whole run is on it already."""
    if os.environ.get("PENSTOCK_TEST_PG") == postgres.OLDEST:
        pytest.skip(f"the whole run is on PostgreSQL {postgres.OLDEST}")
    async with Cluster(
        folder, postgres.binaries(postgres.OLDEST), settings=ClusterSettings(server=FAST)
    ) as cluster:
        yield cluster
