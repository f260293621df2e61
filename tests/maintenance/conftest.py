from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.maintenance.catalogs import CatalogConfig, open_catalog
from tests.maintenance.tables import Stand

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """A table's place in a catalog in SQLite; nothing is created yet."""
    config = CatalogConfig(
        name="lake",
        type="sql",
        uri=f"sqlite:///{tmp_path}/catalog.db",
        properties={"warehouse": (tmp_path / "warehouse").as_uri()},
    )
    catalog = open_catalog(config)
    yield Stand(catalog)
    catalog.close()
