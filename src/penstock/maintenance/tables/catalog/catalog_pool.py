"""Open catalogs in the control plane, one of each. All calls block: call them from threads.

`service` and the Iceberg REST API take catalogs and tables from it; workers open their own.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from penstock.kit.errors import PenstockError
from penstock.maintenance.errors import CatalogUnavailable
from penstock.maintenance.tables.catalog.catalogs import Catalogs, all_tables, open_catalog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from penstock.maintenance.payloads import TableName
    from penstock.maintenance.tables.catalog.catalogs import CatalogConfig
    from penstock.maintenance.tables.catalog.table_access import CatalogTableAccess
    from penstock.maintenance.tables.ownership.neighbors import TablePointer


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
                self._open[name] = self._opened(config)
            return self._open[name]

    def _opened(self, config: CatalogConfig) -> Catalog:
        try:
            return open_catalog(config, shared_uri=self._shared_uri)
        except PenstockError:
            raise
        except Exception as e:
            message = f"Catalog {config.name} cannot be opened: {type(e).__name__}."
            raise CatalogUnavailable(message) from e

    def table_access(
        self, name: TableName, others: Sequence[TablePointer] = ()
    ) -> CatalogTableAccess:
        """`others` are tables of other catalogs that may share the table's storage."""
        from penstock.maintenance.tables.catalog.table_access import CatalogTableAccess

        return CatalogTableAccess(
            self.get(name.catalog), name.identifier, elsewhere=lambda: list(others)
        )

    def load(self, name: TableName) -> Table:
        return self.table_access(name).load()

    def names(self, catalog: str) -> list[tuple[str, str]]:
        """All tables, including nested namespaces, as (dotted namespace, table)."""
        opened = self.get(catalog)
        try:
            tables = all_tables(opened)
        except Exception as e:
            message = f"The tables of {catalog} cannot be listed: {type(e).__name__}."
            raise CatalogUnavailable(message) from e
        return [(".".join(name[:-1]), name[-1]) for name in tables]

    def close(self) -> None:
        with self._lock:
            for catalog in self._open.values():
                catalog.close()
            self._open.clear()
