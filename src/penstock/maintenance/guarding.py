"""Tables that we must not touch: newer than we know, encrypted, or in somebody else's care."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.maintenance.action import Name
from penstock.maintenance.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table

NEWEST_FORMAT = 2
ENABLED = "penstock.maintenance.enabled"
OWNERS = {"self-optimizing.enabled": "Amoro", "snowflake.managed": "Snowflake", "s3tables.maintenance": "S3 Tables"}
"""Properties by which another tool says that it looks after the table."""
LOCKS = ("lock-owner", "locked-by", "lock.owner")
"""How the names of properties end by which a writer says that it holds the table."""
_REWRITES = frozenset({Name.REWRITE_DATA_FILES, Name.REWRITE_POSITION_DELETE_FILES, Name.REWRITE_MANIFESTS})


def check_table(table: Table, name: Name) -> None:
    metadata = table.metadata
    if metadata.format_version > NEWEST_FORMAT:
        raise Refused(
            f"The table has format version {metadata.format_version}; the embedded engine knows up to {NEWEST_FORMAT}.",
            hint="Use a remote engine.",
        )
    if metadata.format_version < NEWEST_FORMAT and name in _REWRITES:
        raise Refused("The table has format version 1, which has no sequence numbers.", hint="Upgrade it to version 2.")
    if any(key.startswith("encryption.") for key in metadata.properties):
        raise Refused("The table is encrypted.", hint="Use an engine that has its keys.")
    if (lock := _locked(metadata.properties)) is not None:
        raise Refused(f"Another writer holds this table ({lock}).", hint="Try again when it has let go.")
    if (why := opted_out(metadata.properties)) is not None:
        raise Refused(why)


def opted_out(properties: Mapping[str, str]) -> str | None:
    if str(properties.get(ENABLED, "true")).lower() == "false":
        return f"{ENABLED} is false: the table's owner does not want it."
    for key, tool in OWNERS.items():
        if str(properties.get(key, "false")).lower() in ("true", "enabled"):
            return f"{tool} looks after this table ({key})."
    return None


def _locked(properties: Mapping[str, str]) -> str | None:
    return next((key for key, value in properties.items() if key.endswith(LOCKS) and value), None)
