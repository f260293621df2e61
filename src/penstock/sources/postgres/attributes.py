"""Check before a query runs that it calls only functions of PostgreSQL and its extensions.

The guard allows functions by name. A database may have its own functions of the same name, its own
operators and casts, and functions that `t.f` calls if t has no column f (see
`penstock.guard.attributes`); only its catalog tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.errors import SqlglotError

from penstock.guard.allowed_functions import FUNCTIONS
from penstock.guard.attributes import qualified_tables, unproven_attributes, words
from penstock.guard.errors import FunctionRefused
from penstock.sources.postgres.types import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.guard.attributes import Words
    from penstock.guard.tables import TableName
    from penstock.kit.sqlfile import Statement

    Ask = Callable[..., list[tuple[object, ...]]]

_COMPARISONS = frozenset({"=", "<>", "<", ">", "<=", ">=", "~~", "!~~", "~~*", "!~~*", "~", "!~"})
"""Operators that IN, BETWEEN, LIKE, CASE and NULLIF use implicitly."""
_HINT = "Select the column through a view, or rewrite the expression."


def check_functions(
    sql: str, ask: Ask, *, callable_: Statement, relation_columns: Statement
) -> None:
    """Reject a query that could call a user-defined function."""
    words_used = words(sql)
    listed = sorted(words_used.called & FUNCTIONS["postgres"])  # no other name passes the guard
    rows = ask(callable_, dotted=sorted(words_used.dotted), called=listed)
    functions = set()
    for what, name, function in rows:
        if what == "dotted":
            functions.add(str(name))
        elif _is_used(str(what), str(name), words_used):
            raise FunctionRefused(
                f"The query could call {function}, a user-defined function.",
                hint=_HINT,
                function=str(function),
            )
    if functions and (unproven := _unproven(sql, frozenset(functions), ask, relation_columns)):
        name = min(unproven)
        raise FunctionRefused(
            f"{name} is not a column of the table before it, but a function.",
            hint="Use a column; name the columns of a subquery with AS.",
            function=name,
        )


def _is_used(what: str, name: str, words_used: Words) -> bool:
    match what:
        case "operator":
            return name in _COMPARISONS or name in words_used.signs.replace(" ", "")
        case "explicit":
            return words_used.casts
        case _:
            return True


def _unproven(
    sql: str, functions: frozenset[str], ask: Ask, relation_columns: Statement
) -> frozenset[str]:
    try:
        tables = {_written(table): table for table in qualified_tables(sql)}
        columns: Mapping[TableName, frozenset[str]] = {
            tables[str(name)]: frozenset(map(str, names if isinstance(names, list) else ()))
            for name, names in ask(relation_columns, names=sorted(tables))
        }
        return unproven_attributes(sql, columns, functions)
    except SqlglotError:
        return functions


def _written(table: TableName) -> str:
    parts = (table.catalog, table.schema, table.name)
    return ".".join(quoted(part) for part in parts if part)
