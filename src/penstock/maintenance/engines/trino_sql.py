"""SQL of the actions for Trino: `ALTER TABLE ... EXECUTE` statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.maintenance.actions.model import DAY_SECONDS, MB, Action, Name
from penstock.maintenance.engines.contract import trace
from penstock.maintenance.errors import Refused

if TYPE_CHECKING:
    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.payloads import TableName

SMALL = 100 * MB
FLOOR = 7 * DAY_SECONDS
"""Trino's default minimum retention."""
_SUPPORTED = {
    Name.EXPIRE_SNAPSHOTS: {"older_than_seconds", "retain_last"},
    Name.REWRITE_DATA_FILES: {"target_file_bytes", "where", "force"},
    Name.REWRITE_MANIFESTS: set[str](),
    Name.REMOVE_ORPHAN_FILES: {"older_than_seconds"},
}


def statement(action: Action, name: TableName, catalog: str, context: ActionContext) -> str:
    """The statement for an action; an option that Trino does not support is refused, never
    ignored."""
    if action.name not in _SUPPORTED:
        raise Refused(
            f"Trino does not support the action {action.name}.",
            hint="On Trino, rewrite_data_files applies and removes the deletes.",
        )
    if unsupported := sorted(set(action.options) - _SUPPORTED[action.name]):
        raise Refused(
            f"Trino does not support the options {', '.join(unsupported)} of {action.name}.",
            hint="Remove them, or use the embedded engine.",
        )
    table = ".".join(_quoted(part) for part in (catalog, name.db, name.table))
    return f"{trace(action, name, context)} ALTER TABLE {table} EXECUTE {_call(action)}"


def _call(action: Action) -> str:
    age = f"'{action.number('older_than_seconds', FLOOR)}s'"
    match action.name:
        case Name.EXPIRE_SNAPSHOTS:
            retain_last = (
                f", retain_last => {action.number('retain_last', 1)}"
                if "retain_last" in action.options
                else ""
            )
            return f"expire_snapshots(retention_threshold => {age}{retain_last})"
        case Name.REMOVE_ORPHAN_FILES:
            return f"remove_orphan_files(retention_threshold => {age})"
        case Name.REWRITE_MANIFESTS:
            return "optimize_manifests"
        case _:
            where = action.text("where")
            size = action.number("target_file_bytes", SMALL) // MB
            condition = f" WHERE {where}" if where else ""
            return f"optimize(file_size_threshold => '{max(1, size)}MB'){condition}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
