"""The output columns of a query, and detection of plain selects from one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.guard.errors import DuplicateColumn
from penstock.guard.tables import TableName

if TYPE_CHECKING:
    from penstock.guard.grammar import Grammar

_PLAIN_PARTS = {"expressions", "from_", "where"}
_PLAIN_TABLE_PARTS = {"this", "db", "catalog", "alias"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSelect:
    """A select of columns (None: all) of one table with an optional condition; it can be split into
    ranges of rows."""

    table: TableName
    columns: tuple[str, ...] | None
    where: str | None


def output_columns(query: exp.Expr, dialect: str) -> tuple[str, ...] | None:
    """The names in order, or None if a star or an unnamed expression leaves them to the source."""
    names = _names(query)
    seen: set[str] = set()
    for name in filter(None, names):
        key = name if dialect == "postgres" else name.lower()
        if key in seen:
            raise DuplicateColumn(
                f"The query has two columns named {name[:80]}.",
                hint=f"Rename one of them: … AS {name[:80]}_2.",
                name=name,
            )
        seen.add(key)
    return None if not names or None in names else tuple(name for name in names if name)


def plain_select(query: exp.Expr, grammar: Grammar) -> PlainSelect | None:
    """The query as a plain select, or None if it is more complex."""
    if not isinstance(query, exp.Select) or _parts(query) - _PLAIN_PARTS:
        return None
    source = query.args.get("from_")
    table = source.this if source else None
    if (
        not isinstance(table, exp.Table)
        or not isinstance(table.this, exp.Identifier)
        or _parts(table) - _PLAIN_TABLE_PARTS
    ):
        return None
    projections = [item.unalias() for item in query.expressions]
    is_star = (
        len(projections) == 1
        and isinstance(projections[0], exp.Star)
        and not _parts(projections[0])
    )
    if not is_star and not all(
        isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier)
        for item in projections
    ):
        return None
    where = query.args.get("where")
    return PlainSelect(
        table=TableName(catalog=table.catalog or None, schema=table.db or None, name=table.name),
        columns=None if is_star else tuple(item.name for item in projections),
        where=grammar.write(where.this) if where else None,
    )


def _names(query: exp.Expr) -> list[str | None]:
    while isinstance(query, exp.Subquery | exp.SetOperation):
        if query.args.get("by_name"):
            return []
        query = query.this
    if not isinstance(query, exp.Select) or query.args.get("kind"):
        return []
    return [_name(item) for item in query.expressions]


def _name(item: exp.Expr) -> str | None:
    if isinstance(item, exp.Alias) or (
        isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier)
    ):
        return item.alias_or_name
    return None


def _parts(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value}
