"""Whether a commit to a table would be readable, and its outcome certain.

Java's Iceberg does not read a table whose log goes back in time by more than a minute. New entries
are dated by this machine's clock, so nothing is committed while the newest entry is ahead of it.
And a property that PyIceberg cannot parse would end a commit half-way, so that nobody could say
whether it stands.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import TableProperties
from pyiceberg.utils.properties import property_as_int

from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.locations import locations

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

LEEWAY_MS = 60_000
"""What Java's Iceberg allows clocks to differ by."""


def check_committable(metadata: TableMetadata) -> None:
    _check_properties(metadata)
    check_clock(metadata)


@dataclass(frozen=True, slots=True)
class Committable:
    """A requirement of every commit: another writer may have changed the table since the check."""

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None:
            return
        try:
            check_committable(base_metadata)
        except Refused as e:
            raise CommitFailedException(e.message) from e


def check_clock(metadata: TableMetadata) -> None:
    """Refused while the newest date of the table is ahead of this machine's clock."""
    newest = max(
        [
            metadata.last_updated_ms,
            *(entry.timestamp_ms for entry in metadata.snapshot_log[-1:]),
            *(entry.timestamp_ms for entry in metadata.metadata_log[-1:]),
        ]
    )
    # Not the clock of the run: PyIceberg dates what it writes by the system's.
    if newest > time.time() * 1000 + LEEWAY_MS:
        raise Refused(
            f"The table's last change is dated {_text(newest)}, which has not come yet: the clock "
            "of a writer is ahead. After a commit with an earlier date, other engines could not "
            "read the table.",
            hint=f"Correct the clocks. Commits are possible from {_text(newest - LEEWAY_MS)} on.",
        )


def _check_properties(metadata: TableMetadata) -> None:
    properties = metadata.properties
    try:
        property_as_int(properties, TableProperties.METADATA_PREVIOUS_VERSIONS_MAX)
    except ValueError as e:
        raise _refusal(str(e)) from e
    try:
        locations(metadata)
    except ValueError as e:
        raise _refusal(str(e)) from e


def _refusal(reason: str) -> Refused:
    return Refused(f"{reason[:300]}.", hint="Correct that property of the table, or remove it.")


def _text(milliseconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OSError, OverflowError, ValueError):
        return f"{milliseconds} ms after 1970"  # beyond the year 9999
