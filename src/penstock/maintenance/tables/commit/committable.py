"""Checks that a commit would produce a readable table and have a definite outcome.

Java's Iceberg cannot read a table whose log goes back in time by more than a minute. New entries
get this machine's time, so nothing is committed while the newest entry is ahead of it. A property
that PyIceberg cannot parse would abort a commit half-way and leave its outcome unknown.
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
from penstock.maintenance.tables.ownership.locations import locations

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

LEEWAY_MS = 60_000
"""The clock skew that Java's Iceberg tolerates."""


def check_committable(metadata: TableMetadata) -> None:
    _check_properties(metadata)
    check_clock(metadata)


@dataclass(frozen=True, slots=True)
class Committable:
    """Commit requirement: repeats the check, because another writer may have changed the table."""

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None:
            return
        try:
            check_committable(base_metadata)
        except Refused as e:
            raise CommitFailedException(e.message) from e


def check_clock(metadata: TableMetadata) -> None:
    """Refused while the table's newest timestamp is ahead of this machine's clock."""
    newest = max(
        [
            metadata.last_updated_ms,
            *(entry.timestamp_ms for entry in metadata.snapshot_log[-1:]),
            *(entry.timestamp_ms for entry in metadata.metadata_log[-1:]),
        ]
    )
    # Not context.now: PyIceberg uses the system clock for what it writes.
    if newest > time.time() * 1000 + LEEWAY_MS:
        raise Refused(
            f"The table's last change has a timestamp in the future ({_text(newest)}): the clock "
            "of a writer is ahead. After a commit with an earlier timestamp, other engines could "
            "not read the table.",
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
