from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from tests.maintenance.tables import SampleTable
from tests.servers.spark import spark as serving_spark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.servers.spark import Spark


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[SampleTable]:
    """A table's place in a catalog in SQLite; nothing is created yet."""
    config = CatalogConfig(
        name="lake",
        type="sql",
        uri=f"sqlite:///{tmp_path}/catalog.db",
        properties={"warehouse": (tmp_path / "warehouse").as_uri()},
    )
    catalog = open_catalog(config)
    yield SampleTable(catalog)
    catalog.close()


@pytest.fixture(scope="session")
async def spark(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Spark]:
    """One server for all tests that want one."""
    async with serving_spark(tmp_path_factory.mktemp("spark")) as server:
        yield server
