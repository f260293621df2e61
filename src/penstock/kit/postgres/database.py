"""The database a process works with: the one it was given, else one of our own for as long as it runs."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kit.postgres.binaries import locate
from penstock.kit.postgres.cluster import Cluster
from penstock.kit.postgres.places import written_by
from penstock.kit.postgres.settings import ClusterSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.kit.config import Settings


@asynccontextmanager
async def database(settings: Settings) -> AsyncIterator[str]:
    """Its DSN. With PENSTOCK_DATABASE_URL nothing is started; data of an older major keep their major."""
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    data_dir = settings.home / "postgres"
    template = os.environ.get("PENSTOCK_PG_TEMPLATE")
    chosen = ClusterSettings(template=Path(template) if template else None)
    async with Cluster(data_dir, locate(written_by(data_dir)), settings=chosen) as cluster:
        yield cluster.dsn()
