"""Maintenance actions as plain data, how they are run, and which outcomes are right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

from pyiceberg.manifest import DataFileContent
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import FixedType, PrimitiveType, StructType

from penstock.maintenance.actions.context import ActionContext
from penstock.maintenance.actions.model import Ended, parse
from penstock.maintenance.engines import embedded
from tests.maintenance.differential.history import NUMBER_ID, pick
from tests.maintenance.differential.manifests import MISREADINGS, live_data_files, live_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table

    from penstock.maintenance.actions.model import Outcome
    from tests.maintenance.differential.tables import SharedTable

LATER = timedelta(days=30)
"""Maintenance runs this long after the writers, so that nothing is too young for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteData:
    rewrite_all: bool = True
    min_input_files: int = 1
    below: int | None = None
    """Only files that may hold numbers below this one."""
    sort: tuple[tuple[int, bool], ...] = ()
    """Columns, and whether they go down."""
    curve: tuple[int, ...] = ()
    by_own_order: bool = False
    small_files: bool = False
    max_files: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteDeletes:
    min_input_files: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteManifests:
    small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    retain_last: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveOrphans:
    pass


Maintenance: TypeAlias = RewriteData | RewriteDeletes | RewriteManifests | Expire | RemoveOrphans


def request(table: Table, action: Maintenance) -> Mapping[str, object]:
    """The action as a user asks for it."""
    match action:
        case RewriteData():
            return _rewrite(table, action)
        case RewriteDeletes():
            return {
                "name": "rewrite_position_delete_files",
                "min_input_files": action.min_input_files,
            }
        case RewriteManifests():
            return {"name": "rewrite_manifests"} | ({"target_bytes": 16384} if action.small else {})
        case Expire():
            return {
                "name": "expire_snapshots",
                "older_than_seconds": 0,
                "retain_last": action.retain_last,
            }
        case RemoveOrphans():
            return {"name": "remove_orphan_files"}


def _rewrite(table: Table, action: RewriteData) -> Mapping[str, object]:
    options: dict[str, object] = {
        "name": "rewrite_data_files",
        "force": True,
        "min_input_files": action.min_input_files,
        "rewrite_all": action.rewrite_all,
    }
    columns = [field.name for field in table.schema().fields]
    if action.below is not None and (number := table.schema().find_column_name(NUMBER_ID)):
        options["where"] = f"{number} < {action.below}"
    if action.sort:
        terms = [f"{pick(columns, at)}{' desc' if down else ''}" for at, down in action.sort]
        options["sort_order"] = ", ".join(dict.fromkeys(terms))
    elif action.curve:
        options["sort_order"] = (
            f"zorder({', '.join(dict.fromkeys(pick(columns, at) for at in action.curve))})"
        )
    elif action.by_own_order:
        options["sort_order"] = "table"
    if action.max_files is not None:
        options["max_files"] = action.max_files
    if action.small_files:
        options |= {"target_file_bytes": 65536, "max_group_bytes": 1024 * 1024}
    return options


def run(shared: SharedTable, asked: Mapping[str, object]) -> Outcome:
    attempt = ActionContext(job_id=7, attempt=uuid4().hex, now=lambda: datetime.now(UTC) + LATER)
    [action] = parse([asked])
    return embedded.execute(shared.table_access(attempt), attempt, action)


class WrongOutcome(AssertionError):
    """An action ended as it must not."""


def check_outcome(
    table: Table,
    asked: Mapping[str, object],
    outcome: Outcome,
    *,
    misread: bool,
    neighbor: bool,
) -> None:
    """`misread` says that PyIceberg cannot read all manifests, nor can we then; `neighbour` that
    another table has its files in this one's folder, which must keep all of them."""
    orphans = asked["name"] == "remove_orphan_files"
    fine = {Ended.COMPLETED, Ended.NOTHING_TO_DO} | (
        {Ended.PARTIAL} if "max_files" in asked else set()
    )
    if outcome.status in fine and not (orphans and neighbor):
        return
    if outcome.status is Ended.REFUSED:
        shared = orphans and neighbor and "The location is shared with" in outcome.message
        if shared or _legitimate(table, asked, outcome.message, misread=misread):
            return
    if "or the summary is wrong" in outcome.message and _has_wrong_summary(table):
        return
    raise WrongOutcome(f"{asked} ended as {outcome.status}: {outcome.message}")


def _legitimate(table: Table, asked: Mapping[str, object], message: str, *, misread: bool) -> bool:
    """Refusals that the table or the request deserves."""
    order = str(asked.get("sort_order", ""))
    names = [field.name for field in table.schema().fields]
    nested = any(not isinstance(f.field_type, PrimitiveType) for f in table.schema().fields)
    reasons = {
        r"The table has \S*(AVRO|ORC)": _other_format(table),
        r"The table has a struct without fields": _has_empty_struct(table),
        r"is not a Parquet file of position deletes": _other_format(table),
        r"The table has equality deletes": _has_equality_deletes(table),
        r"sort_order: The table has no sort order": order == "table",
        r"sort_order: .* is not a column": any(_ambiguous(name) for name in names),
        r"sort_order: zorder takes 2 to 6 different columns": order.startswith("zorder"),
        r"sort_order: zorder: .* is a nested column": order.startswith("zorder") and nested,
        r"The partition field .* has the type fixed": _partitioned_by_fixed(table),
        r"PyIceberg does not support a type in": misread,
        # Writers that fail leave files behind; with tiny tables that is soon more than half.
        r"bytes look like orphans, which is more than half": (
            asked["name"] == "remove_orphan_files"
        ),
        r"where: ": not _plain(table.schema().find_column_name(NUMBER_ID) or ""),
    }
    return any(fits and re.search(reason, message) for reason, fits in reasons.items())


def _has_wrong_summary(table: Table) -> bool:
    """PyIceberg counts a file that was live twice and is removed as one, from then on."""
    for snapshot in table.metadata.snapshots:
        total = snapshot.summary["total-data-files"] if snapshot.summary is not None else None
        if total is not None and len(list(live_data_files(table, snapshot))) < int(total):
            return True
    return False


def _partitioned_by_fixed(table: Table) -> bool:
    """A bucket of a fixed value is a number."""
    return any(
        isinstance(schema.find_type(field.source_id), FixedType)
        and not isinstance(field.transform, BucketTransform)
        for spec in table.metadata.partition_specs
        for field in spec.fields
        for schema in table.metadata.schemas
        if field.source_id in schema.field_ids
    )


def _has_equality_deletes(table: Table) -> bool:
    snapshot = table.metadata.current_snapshot()
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    try:
        entries = [entry for manifest in manifests for entry in live_entries(table, manifest)]
    except MISREADINGS:
        return False
    return any(e.data_file.content == DataFileContent.EQUALITY_DELETES for e in entries)


def _has_empty_struct(table: Table) -> bool:
    fields = table.schema()._lazy_id_to_field.values()
    structs = [f.field_type for f in fields if isinstance(f.field_type, StructType)]
    return any(not struct.fields for struct in structs)


def _other_format(table: Table) -> bool:
    return table.properties.get("write.format.default", "parquet") != "parquet"


def _ambiguous(name: str) -> bool:
    """Whether the text of a sort order cannot name this column."""
    return "," in name or name != name.strip() or name.lower().endswith((" asc", " desc"))


def _plain(name: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name))
