"""Puts the attempt's name into the names of metadata files, so that leftovers can be identified.

`catalogs` and `table_access` apply it to what an attempt opens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.catalog import MetastoreCatalog

if TYPE_CHECKING:
    from pyiceberg.table import StagedTable, Table
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier

METADATA = ".metadata.json"


def marked(location: str, mark: str) -> str:
    return f"{location.removesuffix(METADATA)}.{mark}{METADATA}"


class MarkedCatalog(MetastoreCatalog):
    """Mixin for catalog classes that changes only the names of metadata files. A REST catalog
    chooses them on the server."""

    mark: str

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        staged = super()._update_and_stage_table(
            current_table, table_identifier, requirements, updates
        )
        staged.metadata_location = marked(staged.metadata_location, self.mark)
        return staged


def with_mark(kind: type, mark: str | None) -> type:
    if mark is None or not issubclass(kind, MetastoreCatalog):
        return kind
    return type(f"Marked{kind.__name__}", (MarkedCatalog, kind), {"mark": mark})
