"""Whether files of a table may be deleted at all: `gc.enabled`, which its owner may change at any
moment.
"""

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
    """Anything but `true` is no, as in Java; a name in other letters, which Java would not read, is
    taken seriously.
    """
    values = [value for name, value in properties.items() if name.strip().lower() == GC_ENABLED]
    return all(str(value).strip().lower() == "true" for value in values)


def check_collectable(table: Table) -> None:
    if not may_collect(table.properties):
        raise Refused(
            f"{GC_ENABLED} is not true: somebody else may own files of this table.",
            hint="Nothing is deleted here.",
        )


@dataclass(frozen=True, slots=True)
class Collectable:
    """A requirement of a commit: files may still be deleted.

    The protocol of REST catalogs has no word for it.
    """

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None or not may_collect(base_metadata.properties):
            raise CommitFailedException(f"{GC_ENABLED} was set to false meanwhile.")
