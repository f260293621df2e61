"""The database a process works with: the one it was given, else one of our own for as long as it
runs."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.kit.postgres.binaries import locate
from penstock.kit.postgres.cluster import Cluster
from penstock.kit.postgres.errors import PostgresFailed
from penstock.kit.postgres.paths import written_by
from penstock.kit.postgres.settings import ClusterSettings, Shutdown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.kit.settings import DatabaseSettings

log = logging.get(__name__)
_RESTART_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


@asynccontextmanager
async def database(settings: DatabaseSettings) -> AsyncIterator[str]:
    """Its DSN, past any pooler. With PENSTOCK_DATABASE_URL nothing is started; data of an older
    major keep their major. A server of our own that ends by itself is started again under the same
    DSN."""
    if settings.database_dsn is not None:
        yield settings.database_dsn
        return
    data_dir = settings.home / "postgres"
    template = os.environ.get("PENSTOCK_PG_TEMPLATE")
    chosen = ClusterSettings(template=Path(template) if template else None)
    async with Cluster(data_dir, locate(written_by(data_dir)), settings=chosen) as cluster:
        keeper = asyncio.create_task(_keep_running(cluster))
        try:
            yield cluster.dsn()
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper


async def _keep_running(cluster: Cluster) -> None:
    while True:
        log.error("postgres_ended", code=await cluster.wait())
        for attempt in count():
            await asyncio.sleep(_RESTART_SECONDS[min(attempt, len(_RESTART_SECONDS) - 1)])
            try:
                await cluster.restart(Shutdown.IMMEDIATE)
            except (PostgresFailed, OSError) as e:
                log.exception("postgres_not_restarted", attempt=attempt + 1, error=str(e))
            else:
                break
