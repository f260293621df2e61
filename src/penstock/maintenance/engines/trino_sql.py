"""The actions as Trino has them. Each statement says in a comment who asks, so that it is found in
Trino's own list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.maintenance.actions.model import DAY_SECONDS, MB, Action, Name
from penstock.maintenance.engines.contract import trace
from penstock.maintenance.errors import Refused

if TYPE_CHECKING:
    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.payloads import TableName

SMALL = 100 * MB
FLOOR = 7 * DAY_SECONDS
"""Trino refuses to go under this, unless it is configured to."""
_KNOWN = {
    Name.EXPIRE_SNAPSHOTS: {"older_than_seconds", "retain_last"},
    Name.REWRITE_DATA_FILES: {"target_file_bytes", "where", "force"},
    Name.REWRITE_MANIFESTS: set[str](),
    Name.REMOVE_ORPHAN_FILES: {"older_than_seconds"},
}


def statement(action: Action, name: TableName, catalog: str, run: Run) -> str:
    """What an action is in Trino; an option that Trino has no word for is refused, never left out
    in silence."""
    if action.name not in _KNOWN:
        raise Refused(
            "Trino has no such action.",
            hint="rewrite_data_files applies and removes the deletes there.",
        )
    if strange := sorted(set(action.options) - _KNOWN[action.name]):
        raise Refused(
            f"Trino has no word for {', '.join(strange)}.",
            hint="Leave it out, or use the embedded engine.",
        )
    table = ".".join(_quoted(part) for part in (catalog, name.db, name.table))
    return f"{trace(action, name, run)} ALTER TABLE {table} EXECUTE {_call(action)}"


def _call(action: Action) -> str:
    age = f"'{action.number('older_than_seconds', FLOOR)}s'"
    match action.name:
        case Name.EXPIRE_SNAPSHOTS:
            kept = (
                f", retain_last => {action.number('retain_last', 1)}"
                if "retain_last" in action.options
                else ""
            )
            return f"expire_snapshots(retention_threshold => {age}{kept})"
        case Name.REMOVE_ORPHAN_FILES:
            return f"remove_orphan_files(retention_threshold => {age})"
        case Name.REWRITE_MANIFESTS:
            return "optimize_manifests"
        case _:
            where = action.options.get("where")
            size = action.number("target_file_bytes", SMALL) // MB
            return f"optimize(file_size_threshold => '{max(1, size)}MB'){f' WHERE {where}' if where else ''}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
