"""A table that PyIceberg and Spark write in turn, and that maintenance then works on.

PyIceberg has it in a catalog in memory, Spark in a catalog of folders, where the newest metadata
is the file `v<n>.metadata.json` that `version-hint.text` names. To hand the table over is to name
the same metadata in both.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pyiceberg.catalog.sql import SqlCatalog

from penstock.maintenance.tables.catalog.table_access import CatalogTableAccess, FencedTableAccess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.sorting import SortOrder

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import TableAccess
    from tests.maintenance.differential.readers import Spark

NAMESPACE = "db"


@dataclass(slots=True)
class SharedTable:
    catalog: SqlCatalog
    spark: Spark
    name: str
    pointer: bool
    """Whether maintenance reaches the table by a pointer, as workers do, or by the catalog."""
    _version: int = field(default=0, init=False)

    def create(
        self, schema: Schema, spec: PartitionSpec, order: SortOrder, properties: dict[str, str]
    ) -> None:
        self.catalog.create_table(
            (NAMESPACE, self.name),
            schema,
            location=self.folder.as_uri(),
            partition_spec=spec,
            sort_order=order,
            properties=properties,
        )

    @property
    def folder(self) -> Path:
        return self.spark.warehouse / NAMESPACE / self.name

    @property
    def elsewhere(self) -> str:
        """A place outside of the table's location."""
        return self.folder.with_name(f"{self.name}-elsewhere").as_uri()

    @property
    def table(self) -> Table:
        return self.catalog.load_table((NAMESPACE, self.name))

    @property
    def metadata_file(self) -> str:
        return self.table.metadata_location

    @property
    def spark_name(self) -> str:
        return f"folders.{NAMESPACE}.{self.name}"

    def run_in_spark(self, *statements: str) -> list[list[object]]:
        """Statements on `spark_name`."""
        with self.handed_over() as spark:
            return spark.run(*statements)

    @contextmanager
    def handed_over(self) -> Iterator[Spark]:
        """Spark has the table as it is; whatever Spark commits is then PyIceberg's table too."""
        hint = self.folder / "metadata" / "version-hint.text"
        self._version += 1
        shutil.copy(local_path(self.metadata_file), self._metadata_of_version(self._version))
        hint.write_text(str(self._version))
        try:
            yield self.spark
        finally:
            if (newest := int(hint.read_text())) != self._version:
                self._version = newest
                self._point_to(self._metadata_of_version(newest).as_uri())

    def table_access(self, run: ActionContext) -> TableAccess:
        identifier = (NAMESPACE, self.name)
        if not self.pointer:
            return CatalogTableAccess(self.catalog, identifier)

        def swap(base: str, to: str) -> bool:
            if self.metadata_file != base:
                return False
            self._point_to(to)
            return True

        return FencedTableAccess(
            identifier,
            properties={},
            current=lambda: self.metadata_file,
            swap=swap,
            others=list,
            context=run,
        )

    def drop(self) -> None:
        self.catalog.drop_table((NAMESPACE, self.name))
        shutil.rmtree(self.folder)

    def _metadata_of_version(self, version: int) -> Path:
        return self.folder / "metadata" / f"v{version}.metadata.json"

    def _point_to(self, location: str) -> None:
        self.catalog.drop_table((NAMESPACE, self.name))
        self.catalog.register_table((NAMESPACE, self.name), location)


def local_path(location: str) -> Path:
    """Where a file is that an engine names: Java leaves out the authority. Nothing is unquoted."""
    return Path(location.removeprefix("file:").replace("///", "/", 1))


@contextmanager
def shared_table(spark: Spark, *, pointer: bool) -> Iterator[SharedTable]:
    catalog = SqlCatalog("memory", uri="sqlite:///:memory:", warehouse=spark.warehouse.as_uri())
    catalog.create_namespace_if_not_exists(NAMESPACE)
    shared = SharedTable(catalog, spark, f"t{uuid4().hex[:12]}", pointer)
    try:
        yield shared
    finally:
        catalog.close()
        shutil.rmtree(shared.folder, ignore_errors=True)
        shutil.rmtree(local_path(shared.elsewhere), ignore_errors=True)
