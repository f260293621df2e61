"""A PostgreSQL for measuring: durable as in production, with its CPU, WAL and commits on show."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from bench import cpu
from penstock.kit.postgres import Cluster, ClusterSettings, Tcp, locate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SETTINGS = {
    "shared_buffers": "2GB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "30min",
    "max_connections": "200",
}


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_seconds: float
    wal_bytes: int
    commits: int

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            self.cpu_seconds - other.cpu_seconds,
            self.wal_bytes - other.wal_bytes,
            self.commits - other.commits,
        )


class Measured:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def fresh(self, name: str, *, template: str = "template1") -> str:
        """A new database, empty or as the template is; its DSN."""
        connection = await asyncpg.connect(self.cluster.dsn("postgres"))
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        await connection.close()
        return self.cluster.dsn(name)

    async def cost(self, dsn: str) -> Cost:
        connection = await asyncpg.connect(dsn)
        await connection.execute("SELECT pg_stat_force_next_flush()")
        wal = await connection.fetchval(
            "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"
        )
        commits = await connection.fetchval(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        )
        await connection.close()
        return Cost(cpu.of_tree(self.cluster.pid), wal, commits)


@asynccontextmanager
async def measured(tcp: Tcp | None = None) -> AsyncIterator[Measured]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    folder.chmod(0o755)
    try:
        async with Cluster(
            folder / "pg", locate(), settings=ClusterSettings(server=SETTINGS, tcp=tcp)
        ) as cluster:
            yield Measured(cluster)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
