"""A real PostgreSQL for every test: one server a test process, one fresh database a test.

`PENSTOCK_TEST_PG=15` chooses another major than the wheel's.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import httpx2
import pytest
from tools.generate import generate

from penstock.kit.migrate import find, migrate
from penstock.kit.postgres import Cluster, ClusterSettings
from penstock.wiring.migrations import MIGRATION_PACKAGES
from tests.memory_folder import use_memory
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

use_memory()
generate()
# Thousands of tests and their libraries stay; looking through them for garbage again and again
# takes minutes.
gc.set_threshold(50_000, 20, 100)
# Each client would read all certificates again.
httpx2._transports.default.create_ssl_context = functools.cache(httpx2.create_ssl_context)  # type: ignore[attr-defined]

_TEMPLATE = "template_penstock"
LONGEST = (
    "tests/maintenance/differential/test_differential.py",
    "tests/chaos/test_chaos.py",
    "tests/proof/test_orders_of_attempts.py",
    "tests/reconcile/oracle/test_oracle.py",
    "tests/maintenance/test_lifecycle.py",
    "tests/reconcile/test_kill.py",
    "tests/worker/test_exports_trino.py",
    "tests/graph_server/test_abuse.py",
    "tests/docs/test_blocks.py",
    "tests/api/test_schema.py",
    "tests/graphdb/test_conformance.py",
    "tests/api/test_body_fuzz.py",
    "tests/deploy/test_image.py",
    "tests/reconcile/test_large.py",
    "tests/proof/test_lock_order.py",
    "tests/graphdb/oracle/test_oracle.py",
    "tests/maintenance/test_spark_handles.py",
    "tests/cli/test_stack.py",
    "tests/cli/test_demo.py",
    "tests/examples/test_notebooks.py",
    "tests/maintenance/test_trino.py",
    "tests/client/test_live.py",
    "tests/graphs/test_graph.py",
)
"""Test files of half a minute and more, longest first."""
SLOW = frozenset(Path(__file__).with_name("slow_files.txt").read_text().split())
"""Files that `make quick` leaves out: they need a JVM, a browser or a notebook, or many seconds."""
_numbers = count(1)

# The disk may lie in tests: killed processes lose nothing by that, only a power cut would.
FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "max_connections": "200",
    "max_wal_size": "256MB",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave slow files out (make quick)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--quick"):
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    return True if name in SLOW else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first, so that all cores are busy to the end."""
    items.sort(
        key=lambda item: (
            LONGEST.index(name)
            if (name := item.nodeid.partition("::")[0]) in LONGEST
            else len(LONGEST)
        )
    )


async def prepare_template(dsn: str) -> None:
    """What every test's database begins with; it must leave no connection open."""
    await migrate(dsn, find(MIGRATION_PACKAGES))


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
    binaries = postgres.binaries(os.environ.get("PENSTOCK_TEST_PG"))
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


@pytest.fixture
async def warehouse(pg: Cluster) -> AsyncIterator[str]:
    """The DSN of an empty database, for data: the control plane's own is no data source."""
    name = f"warehouse_{next(_numbers)}"
    await _execute(pg, f"CREATE DATABASE {name}")
    yield pg.dsn(name)
    await _execute(pg, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
async def lasting_database(pg: Cluster, template: str) -> AsyncIterator[str]:
    """One for all tests of a module, for those that only look."""
    name = f"test_{next(_numbers)}"
    await _execute(pg, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield pg.dsn(name)
    await _execute(pg, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
async def lasting_warehouse(pg: Cluster) -> AsyncIterator[str]:
    """The DSN of an empty database, for data that all tests of a module read."""
    name = f"warehouse_{next(_numbers)}"
    await _execute(pg, f"CREATE DATABASE {name}")
    yield pg.dsn(name)
    await _execute(pg, f"DROP DATABASE {name} WITH (FORCE)")


async def _execute(pg: Cluster, statement: str) -> None:
    connection = await asyncpg.connect(pg.dsn("postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
