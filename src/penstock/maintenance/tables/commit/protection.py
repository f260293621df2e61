"""Refuses tables that must not be maintained: unsupported, encrypted, locked or opted out.

A table may change while an action runs. So the check is made when an action begins, before each
commit and each batch of deletions, and as a requirement of each commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import TableProperties
from pyiceberg.transforms import UnknownTransform

from penstock.maintenance.actions.model import Name
from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.commit.committable import check_committable
from penstock.maintenance.tables.ownership.locations import NAMES_CODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.partitioning import PartitionField
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

NEWEST_FORMAT = 2
ENABLED = "penstock.maintenance.enabled"
OWNERS = {
    "self-optimizing.enabled": "Amoro",
    "snowflake.managed": "Snowflake",
    "s3tables.maintenance": "S3 Tables",
}
"""Properties of tables that another tool maintains."""
LOCKS = ("lock-owner", "locked-by", "lock.owner")
"""Suffixes of property names with which a writer locks a table."""
_REWRITES = frozenset(
    {Name.REWRITE_DATA_FILES, Name.REWRITE_POSITION_DELETE_FILES, Name.REWRITE_MANIFESTS}
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """Commit requirement: the table still allows the action.

    The REST catalog protocol cannot express it.
    """

    action: Name

    def check(self, table: Table) -> None:
        check_table(table, self.action)

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None:
            return
        try:
            check_metadata(base_metadata, self.action)
        except Refused as e:
            raise CommitFailedException(e.message) from e


def check_table(table: Table, name: Name) -> None:
    check_metadata(table.metadata, name)


def check_metadata(metadata: TableMetadata, name: Name) -> None:
    if metadata.format_version > NEWEST_FORMAT:
        raise Refused(
            f"The table has format version {metadata.format_version}; the embedded engine "
            f"supports versions up to {NEWEST_FORMAT}.",
            hint="Use a remote engine.",
        )
    if metadata.format_version < NEWEST_FORMAT and name in _REWRITES:
        raise Refused(
            "The table has format version 1, which has no sequence numbers.",
            hint="Upgrade it to version 2.",
        )
    if (field := _unknown_transform(metadata)) is not None:
        raise Refused(
            f"The partition field {field.name!r} has a transform that is not supported.",
            hint="Use a remote engine.",
        )
    if (fixed := _fixed_partition(metadata)) is not None:
        raise Refused(
            f"The partition field {fixed!r} has the type fixed, which Java's Iceberg writes into "
            "manifests in a form that other readers cannot decode.",
            hint="Use a remote engine.",
        )
    if NAMES_CODE in metadata.properties:
        raise Refused(
            f"The property {NAMES_CODE} names custom code, which is never loaded.",
            hint="Remove the property.",
        )
    _check_name_mapping(metadata)
    if any(key.startswith("encryption.") for key in metadata.properties):
        raise Refused("The table is encrypted.", hint="Use an engine that has its keys.")
    if (lock := _locked(metadata.properties)) is not None:
        raise Refused(
            f"Another writer has locked this table ({lock}).",
            hint="Try again when the lock is released.",
        )
    if (why := opted_out(metadata.properties)) is not None:
        raise Refused(why)
    if name is not Name.REMOVE_ORPHAN_FILES:
        check_committable(metadata)


def _fixed_partition(metadata: TableMetadata) -> str | None:
    """A partition field of any spec whose column has the type fixed in any schema."""
    for spec in metadata.partition_specs:
        for field in spec.fields:
            for schema in metadata.schemas:
                if field.source_id in schema.field_ids:
                    type_ = field.transform.result_type(schema.find_type(field.source_id))
                    if str(type_).startswith("fixed"):
                        return str(field.name)
    return None


def _unknown_transform(metadata: TableMetadata) -> PartitionField | None:
    fields = (field for spec in metadata.partition_specs for field in spec.fields)
    return next((field for field in fields if isinstance(field.transform, UnknownTransform)), None)


def _check_name_mapping(metadata: TableMetadata) -> None:
    try:
        metadata.name_mapping()
    except ValueError as e:
        name = TableProperties.DEFAULT_NAME_MAPPING
        message = f"The property {name} is not a valid name mapping."
        raise Refused(message, hint="Correct or remove the property.") from e


def opted_out(properties: Mapping[str, str]) -> str | None:
    if str(properties.get(ENABLED, "true")).lower() == "false":
        return f"{ENABLED} is false: the table's owner opted out of maintenance."
    for key, tool in OWNERS.items():
        if str(properties.get(key, "false")).lower() in ("true", "enabled"):
            return f"{tool} maintains this table ({key})."
    return None


def _locked(properties: Mapping[str, str]) -> str | None:
    return next((key for key, value in properties.items() if key.endswith(LOCKS) and value), None)
