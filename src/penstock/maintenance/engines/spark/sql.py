"""The actions as Iceberg's procedures in Spark have them.

Whatever comes from outside is a literal or a quoted name. Spark unescapes backslashes, ends a text
at a quote, and before all that puts the values of variables into the whole statement: a dollar is
written by its number.
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

    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.payloads import TableName

ORPHAN_AGE = 3 * DAY_SECONDS
MIN_INPUT_FILES = 5
_ZORDER = re.compile(r"z_?order\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_SORTED = re.compile(
    r"(?P<name>\S+)(?:\s+(?P<way>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?", re.IGNORECASE
)
_CODES = {"\\": "\\\\", "'": "\\'", "$": "\\u0024", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
_NO_BUDGET = "a procedure commits all or nothing"
_WHY = {
    "max_bytes": _NO_BUDGET,
    "max_files": _NO_BUDGET,
    "max_seconds": _NO_BUDGET,
    "hot_seconds": "name the partitions with `where`",
    "target_bytes": "set commit.manifest.target-size-bytes on the table",
}
_KNOWN: Mapping[Name, frozenset[str]] = {
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
    action: Action, name: TableName, catalog: str, table: Table, run: Run, *, dry_run: bool = False
) -> str:
    """What an action is in Spark; an option that Spark has no word for is refused, never left out
    in silence."""
    for strange in sorted(set(action.options) - _KNOWN[action.name]):
        why = _WHY.get(strange, "it has no word for it")
        hint = "Leave it out, or use another engine."
        raise Refused(f"Spark cannot take {strange} of {action.name}: {why}.", hint=hint)
    path = ".".join(quoted(part) for part in name.identifier)
    arguments = {"table": literal(path)} | _arguments(action, table, run)
    if dry_run and action.name is Name.REMOVE_ORPHAN_FILES:
        arguments["dry_run"] = "true"
    said = ", ".join(f"{key} => {value}" for key, value in arguments.items())
    return f"{trace(action, name, run)} CALL {quoted(catalog)}.system.{action.name}({said})"


def literal(text: str) -> str:
    return "'" + "".join(_CODES.get(character, character) for character in text) + "'"


def quoted(name: str) -> str:
    if "${" in name:
        raise Refused(f"Spark would take a part of the name {name[:80]!r} for a variable.")
    return "`" + name.replace("`", "``") + "`"


def _arguments(action: Action, table: Table, run: Run) -> dict[str, str]:
    match action.name:
        case Name.EXPIRE_SNAPSHOTS:
            rule = rule_for(table.metadata, action)
            return {
                "older_than": _before(run, rule.age_ms / 1000),
                "retain_last": str(rule.keep),
                "stream_results": "true",
            }
        case Name.REMOVE_ORPHAN_FILES:
            return {"older_than": _before(run, action.number("older_than_seconds", ORPHAN_AGE))}
        case Name.REWRITE_MANIFESTS:
            return {"use_caching": "false"}
        case Name.REWRITE_POSITION_DELETE_FILES:
            return {"options": _options({"min-input-files": action.options.get("min_input_files")})}
        case Name.REWRITE_DATA_FILES:
            return _rewrite(action)


def _rewrite(action: Action) -> dict[str, str]:
    given = action.options
    options = {
        "target-file-size-bytes": given.get("target_file_bytes"),
        "min-input-files": given.get("min_input_files", MIN_INPUT_FILES),
        "max-file-group-size-bytes": given.get("max_group_bytes"),
        "max-files-to-rewrite": given.get("max_files"),
        "rewrite-all": "true" if given.get("rewrite_all") else None,
    }
    arguments = {"options": _options(options)}
    if "sort_order" in given:
        arguments |= {"strategy": "'sort'"} | _order(str(given["sort_order"]).strip())
    if "where" in given:
        arguments["where"] = literal(str(given["where"]))
    return arguments


def _order(given: str) -> dict[str, str]:
    """`table` is the table's own order, which is Spark's when none is named."""
    if given.lower() == "table":
        return {}
    if zorder := _ZORDER.fullmatch(given):
        columns = [_column(piece.strip()) for piece in zorder[1].split(",")]
        return {"sort_order": literal(f"zorder({', '.join(columns)})")}
    return {"sort_order": literal(", ".join(_sorted(piece.strip()) for piece in given.split(",")))}


def _sorted(piece: str) -> str:
    found = _SORTED.fullmatch(piece)
    if found is None:
        raise Refused(f"sort_order: {piece[:80]!r} is not a column with asc or desc.")
    way = (found["way"] or "asc").upper()
    nulls = (found["nulls"] or ("first" if way == "ASC" else "last")).upper()
    return f"{_column(found['name'])} {way} NULLS {nulls}"


def _column(name: str) -> str:
    if not name or name.split() != [name]:
        raise Refused(f"sort_order: {name[:80]!r} is not a column.")
    return ".".join(quoted(part.strip("`")) for part in name.split("."))


def _options(given: Mapping[str, object]) -> str:
    said = [
        f"{literal(key)}, {literal(str(value))}"
        for key, value in given.items()
        if value is not None
    ]
    return f"map({', '.join(said)})"


def _before(run: Run, seconds: float) -> str:
    at = (run.now() - timedelta(seconds=seconds)).astimezone(UTC)
    return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f}Z'"
