"""Catalogs that stay open in the control plane; all of this blocks, and is called from threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from penstock.maintenance.catalogs import Catalogs, open_catalog

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from penstock.maintenance.lake import CatalogLake
    from penstock.maintenance.order import TableName


class CatalogPool:
    def __init__(self, catalogs: Catalogs, *, shared_uri: str | None) -> None:
        self.catalogs = catalogs
        self._shared_uri = shared_uri
        self._open: dict[str, Catalog] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Catalog:
        config = self.catalogs.get(name)
        with self._lock:
            if name not in self._open:
                self._open[name] = open_catalog(config, shared_uri=self._shared_uri)
            return self._open[name]

    def lake(self, name: TableName) -> CatalogLake:
        from penstock.maintenance.lake import CatalogLake

        return CatalogLake(self.get(name.catalog), name.identifier)

    def load(self, name: TableName) -> Table:
        return self.lake(name).load()

    def names(self, catalog: str) -> list[tuple[str, str]]:
        """Every table: its namespace, with dots, and its name."""
        opened = self.get(catalog)
        found = [name for space in opened.list_namespaces() for name in opened.list_tables(space)]
        return [(".".join(name[:-1]), name[-1]) for name in found]

    def close(self) -> None:
        with self._lock:
            for catalog in self._open.values():
                catalog.close()
            self._open.clear()
