"""Before a query runs: its words run nothing but what PostgreSQL and its extensions brought.

The guard lists functions by name. A database may have more of that name, operators and casts of its
own, and functions that `t.f` runs where t has no column f (see `penstock.guard.attributes`); only
its catalog knows.
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
"""IN, BETWEEN, LIKE, CASE and NULLIF use these without writing them."""
_HINT = "Select the column by a view, or write the expression in another way."


def check_calls_nothing_else(
    sql: str, ask: Ask, *, callable_: Statement, relation_columns: Statement
) -> None:
    """Refuse a query that could run a function of the database's own."""
    spoken = words(sql)
    listed = sorted(spoken.called & FUNCTIONS["postgres"])  # no other name passes the guard
    rows = ask(callable_, dotted=sorted(spoken.dotted), called=listed)
    functions = set()
    for what, name, function in rows:
        if what == "dotted":
            functions.add(str(name))
        elif _is_used(str(what), str(name), spoken):
            raise FunctionRefused(
                f"The query could run {function}, a function of this database.",
                hint=_HINT,
                function=str(function),
            )
    if functions and (unproven := _unproven(sql, frozenset(functions), ask, relation_columns)):
        name = min(unproven)
        raise FunctionRefused(
            f"{name} is no column of the table before it, but the name of a function.",
            hint="Name a column; give the columns of a subquery names with AS.",
            function=name,
        )


def _is_used(what: str, name: str, spoken: Words) -> bool:
    match what:
        case "operator":
            return name in _COMPARISONS or name in spoken.signs.replace(" ", "")
        case "explicit":
            return spoken.casts
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
