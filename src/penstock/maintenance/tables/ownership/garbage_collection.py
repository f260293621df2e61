"""Checks `gc.enabled`: whether files of a table may be deleted; it may change at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException

from penstock.maintenance.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

GC_ENABLED = "gc.enabled"


def may_collect(properties: Mapping[str, str]) -> bool:
    """False for any value but `true`, as in Java. Unlike Java, the name's case does not matter."""
    values = [value for name, value in properties.items() if name.strip().lower() == GC_ENABLED]
    return all(str(value).strip().lower() == "true" for value in values)


def check_collectable(table: Table) -> None:
    if not may_collect(table.properties):
        raise Refused(
            f"{GC_ENABLED} is not true: files of this table may belong to another table.",
            hint="Nothing was deleted. Set the property to true if the table owns its files.",
        )


@dataclass(frozen=True, slots=True)
class Collectable:
    """Commit requirement: files may still be deleted.

    The REST catalog protocol cannot express it.
    """

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None or not may_collect(base_metadata.properties):
            raise CommitFailedException(f"{GC_ENABLED} was set to false concurrently.")
