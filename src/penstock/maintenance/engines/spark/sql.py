"""SQL of the actions for Spark: calls of Iceberg's procedures.

Input values are always string literals or quoted names. Spark unescapes backslashes, ends a string
at a quote, and substitutes variables in the whole statement before parsing it, so a dollar sign is
written as a Unicode escape.
"""

from __future__ import annotations

import re
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from penstock.maintenance.actions.model import DAY_SECONDS, Action, Name
from penstock.maintenance.actions.retention import rule_for
from penstock.maintenance.engines.contract import trace
from penstock.maintenance.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.payloads import TableName

ORPHAN_AGE = 3 * DAY_SECONDS
MIN_INPUT_FILES = 5
_ZORDER = re.compile(r"z_?order\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_SORTED = re.compile(
    r"(?P<name>\S+)(?:\s+(?P<way>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?", re.IGNORECASE
)
_CODES = {"\\": "\\\\", "'": "\\'", "$": "\\u0024", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
_NO_BUDGET = "a procedure commits all or nothing"
_REASONS = {
    "max_bytes": _NO_BUDGET,
    "max_files": _NO_BUDGET,
    "max_seconds": _NO_BUDGET,
    "hot_seconds": "name the partitions with `where`",
    "target_bytes": "set commit.manifest.target-size-bytes on the table",
}
_SUPPORTED: Mapping[Name, frozenset[str]] = {
    Name.EXPIRE_SNAPSHOTS: frozenset({"older_than_seconds", "retain_last"}),
    Name.REWRITE_DATA_FILES: frozenset(
        {
            *("target_file_bytes", "min_input_files", "max_group_bytes", "max_files"),
            *("sort_order", "where", "rewrite_all", "force"),
        }
    ),
    Name.REWRITE_POSITION_DELETE_FILES: frozenset({"min_input_files"}),
    Name.REWRITE_MANIFESTS: frozenset(),
    Name.REMOVE_ORPHAN_FILES: frozenset({"older_than_seconds"}),
}


def statement(
    action: Action,
    name: TableName,
    catalog: str,
    table: Table,
    context: ActionContext,
    *,
    dry_run: bool = False,
) -> str:
    """The statement for an action; an option that Spark does not support is refused, never
    ignored."""
    for unsupported in sorted(set(action.options) - _SUPPORTED[action.name]):
        why = _REASONS.get(unsupported, "its procedure has no such option")
        hint = "Remove the option, or use another engine."
        message = f"Spark does not support the option {unsupported} of {action.name}: {why}."
        raise Refused(message, hint=hint)
    path = ".".join(quoted(part) for part in name.identifier)
    arguments = {"table": literal(path)} | _arguments(action, table, context)
    if dry_run and action.name is Name.REMOVE_ORPHAN_FILES:
        arguments["dry_run"] = "true"
    argument_list = ", ".join(f"{key} => {value}" for key, value in arguments.items())
    procedure = f"{quoted(catalog)}.system.{action.name}"
    return f"{trace(action, name, context)} CALL {procedure}({argument_list})"


def literal(text: str) -> str:
    return "'" + "".join(_CODES.get(character, character) for character in text) + "'"


def quoted(name: str) -> str:
    if "${" in name:
        raise Refused(f"Spark would expand a variable in the name {name[:80]!r}.")
    return "`" + name.replace("`", "``") + "`"


def _arguments(action: Action, table: Table, context: ActionContext) -> dict[str, str]:
    match action.name:
        case Name.EXPIRE_SNAPSHOTS:
            rule = rule_for(table.metadata, action)
            return {
                "older_than": _before(context, rule.age_ms / 1000),
                "retain_last": str(rule.keep),
                "stream_results": "true",
            }
        case Name.REMOVE_ORPHAN_FILES:
            return {"older_than": _before(context, action.number("older_than_seconds", ORPHAN_AGE))}
        case Name.REWRITE_MANIFESTS:
            return {"use_caching": "false"}
        case Name.REWRITE_POSITION_DELETE_FILES:
            return {"options": _options({"min-input-files": action.options.get("min_input_files")})}
        case Name.REWRITE_DATA_FILES:
            return _rewrite(action)


def _rewrite(action: Action) -> dict[str, str]:
    requested = action.options
    options = {
        "target-file-size-bytes": requested.get("target_file_bytes"),
        "min-input-files": requested.get("min_input_files", MIN_INPUT_FILES),
        "max-file-group-size-bytes": requested.get("max_group_bytes"),
        "max-files-to-rewrite": requested.get("max_files"),
        "rewrite-all": "true" if requested.get("rewrite_all") else None,
    }
    arguments = {"options": _options(options)}
    if "sort_order" in requested:
        arguments |= {"strategy": "'sort'"} | _order(str(requested["sort_order"]).strip())
    if "where" in requested:
        arguments["where"] = literal(str(requested["where"]))
    return arguments


def _order(sort_order: str) -> dict[str, str]:
    """Empty for `table`: the procedure then uses the table's own sort order."""
    if sort_order.lower() == "table":
        return {}
    if zorder := _ZORDER.fullmatch(sort_order):
        columns = [_column(piece.strip()) for piece in zorder[1].split(",")]
        return {"sort_order": literal(f"zorder({', '.join(columns)})")}
    return {
        "sort_order": literal(", ".join(_sorted(piece.strip()) for piece in sort_order.split(",")))
    }


def _sorted(piece: str) -> str:
    term = _SORTED.fullmatch(piece)
    if term is None:
        raise Refused(f"sort_order: {piece[:80]!r} is not a column with asc or desc.")
    way = (term["way"] or "asc").upper()
    nulls = (term["nulls"] or ("first" if way == "ASC" else "last")).upper()
    return f"{_column(term['name'])} {way} NULLS {nulls}"


def _column(name: str) -> str:
    if not name or name.split() != [name]:
        raise Refused(f"sort_order: {name[:80]!r} is not a column.")
    return ".".join(quoted(part.strip("`")) for part in name.split("."))


def _options(options: Mapping[str, object]) -> str:
    pairs = [
        f"{literal(key)}, {literal(str(value))}"
        for key, value in options.items()
        if value is not None
    ]
    return f"map({', '.join(pairs)})"


def _before(context: ActionContext, seconds: float) -> str:
    at = (context.now() - timedelta(seconds=seconds)).astimezone(UTC)
    return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f}Z'"
