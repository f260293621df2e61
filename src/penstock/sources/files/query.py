"""Parse a query over files. A plain selection of columns is read directly from the files; all other
queries run in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.sources.errors import SourceQueryError
from penstock.sources.single_table import one_table, parse

DIALECT = "duckdb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A parsed query.

    `plain` are the columns as (name in the file, name in the result), `()` for all of them, None if
    the query needs DuckDB. `named` are the columns that the query refers to, None if it may be
    any."""

    sql: str
    tables: tuple[str, ...]
    plain: tuple[tuple[str, str], ...] | None
    named: frozenset[str] | None
    row_by_row: bool


def parse_query(sql: str) -> Reading:
    tree = parse(sql, DIALECT)
    if tree is None:
        raise SourceQueryError("The query is not exactly one valid SELECT.")
    one = one_table(sql, DIALECT)
    return Reading(
        sql=sql,
        tables=tuple(dict.fromkeys(_tables(tree))),
        plain=_plain(tree) if one is not None else None,
        named=_named(tree) if one is not None else None,
        row_by_row=one is not None and not one.functions,
    )


def _tables(tree: exp.Query) -> list[str]:
    own = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    named = [t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier)]
    return [_full_name(t) for t in named if t.db or t.name not in own]


def _full_name(table: exp.Table) -> str:
    """The dotted name; files have no schemas, so a qualified name matches no table."""
    return ".".join(part.name for part in table.parts)


def _plain(tree: exp.Query) -> tuple[tuple[str, str], ...] | None:
    if tree.args.get("where"):
        return None
    first = tree.selects[0]
    if len(tree.selects) == 1 and isinstance(first, exp.Star) and not any(first.args.values()):
        return ()
    columns = [(chosen.unalias(), chosen.alias_or_name) for chosen in tree.selects]
    if all(
        isinstance(column, exp.Column) and isinstance(column.this, exp.Identifier)
        for column, _ in columns
    ):
        return tuple((column.name, name) for column, name in columns)
    return None


def _named(tree: exp.Query) -> frozenset[str] | None:
    if tree.find(exp.Star, exp.Anonymous):
        return None
    return frozenset(column.name.casefold() for column in tree.find_all(exp.Column))
