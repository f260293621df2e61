"""A real PostgreSQL for every test: one server a test process, one fresh database a test.

`PENSTOCK_TEST_PG=15` chooses another major than the wheel's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.kit.migrate import find, migrate
from penstock.kit.postgres import Cluster, ClusterSettings, locate
from penstock.rooms import ROOMS_WITH_TABLES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_TEMPLATE = "template_penstock"
_numbers = count(1)

# The disk may lie in tests: killed processes lose nothing by that, only a power cut would.
FAST = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "128MB", "max_connections": "200"}


async def prepare_template(dsn: str) -> None:
    """What every test's database begins with; it must leave no connection open."""
    await migrate(dsn, find(ROOMS_WITH_TABLES))


@pytest.fixture(scope="session")
def short_dir() -> Iterator[Path]:
    """A folder that any account can reach; pytest's own are private, and long."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
async def pg(short_dir: Path) -> AsyncIterator[Cluster]:
    """A running server of this test process."""
    binaries = locate(os.environ.get("PENSTOCK_TEST_PG"))
    settings = ClusterSettings(server=FAST)
    async with Cluster(short_dir / "pg", binaries, settings=settings) as cluster:
        yield cluster


@pytest.fixture(scope="session")
async def template(pg: Cluster) -> str:
    """The name of the database that the others are copied from, prepared once."""
    await _execute(pg, f"CREATE DATABASE {_TEMPLATE}")
    await prepare_template(pg.dsn(_TEMPLATE))
    return _TEMPLATE


@pytest.fixture
async def database(pg: Cluster, template: str) -> AsyncIterator[str]:
    """The DSN of a fresh database, gone after the test whoever is still connected."""
    name = f"test_{next(_numbers)}"
    await _execute(pg, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield pg.dsn(name)
    await _execute(pg, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
async def lasting_database(pg: Cluster, template: str) -> AsyncIterator[str]:
    """One for all tests of a module, for those that only look."""
    name = f"test_{next(_numbers)}"
    await _execute(pg, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield pg.dsn(name)
    await _execute(pg, f"DROP DATABASE {name} WITH (FORCE)")


async def _execute(pg: Cluster, statement: str) -> None:
    connection = await asyncpg.connect(pg.dsn("postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
