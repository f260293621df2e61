"""What an expression sees, and what a query gives: relations, scopes and compiled queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlglot import exp

    from penstock.reconcile.match_sql.types import SqlType
    from penstock.reconcile.match_sql.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation of FROM: its columns by name, as SQL, and the columns that identify its rows; None
    where nothing does."""

    name: str
    columns: Sequence[tuple[str, str, SqlType]]
    identity: Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The names that an expression may use. In a grouped SELECT `groups` are the grouping
    expressions."""

    relations: Sequence[Relation] = ()
    merged: Mapping[str, Value] = field(default_factory=dict)
    outer: Scope | None = None
    groups: Sequence[tuple[exp.Expr, Value]] | None = None
    inside_aggregate: bool = False
    may_aggregate: bool = False
    may_window: bool = False
    tie_break: Sequence[str] | None = None

    def find(self, name: str, table: str) -> list[tuple[str, SqlType]]:
        name, table = name.casefold(), table.casefold()
        return [
            (sql, kind)
            for relation in self.relations
            if not table or relation.name.casefold() == table
            for own, sql, kind in relation.columns
            if own.casefold() == name
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """SQL and its result columns: their names, their names in the SQL, and their types. `identity`
    are the columns that identify its rows."""

    sql: str
    columns: Sequence[tuple[str, str, SqlType]]
    identity: Sequence[str] | None
