"""Compiles queries of match_sql to the SQL of an engine.

Every column gets a generated name, and every SELECT passes on the columns that identify its rows,
so that a window over it has the same order on every engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.reconcile.match_sql.equalities import equalities
from penstock.reconcile.match_sql.expressions import Expressions
from penstock.reconcile.match_sql.functions import NAMES
from penstock.reconcile.match_sql.parse import (
    SOURCES,
    only,
    parse,
    refused,
    shown,
    too_deep,
    using_of,
)
from penstock.reconcile.match_sql.scope import Query, Relation, Scope
from penstock.reconcile.match_sql.select import Select
from penstock.reconcile.match_sql.types import carried, type_of
from penstock.reconcile.match_sql.values import Maker, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.engines.contract import Dialect
    from penstock.reconcile.match_sql.types import SqlType
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.recipes.model import SideName

    Columns = Mapping[SideName, Mapping[str, Column]]

_SETS: Mapping[type[exp.Expr], str] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """match_sql in the dialect of an engine, and the equalities that join both sides."""

    sql: str
    columns: Sequence[tuple[str, str, SqlType]]
    equalities: Sequence[tuple[str, str]]


def checked(sql: str) -> exp.Query:
    """The tree of match_sql; raises errors that can be found without knowing the columns."""
    return parse(sql, NAMES)


def compiled(sql: str, dialect: Dialect, zone: str, columns: Columns) -> Compiled:
    """match_sql over sources with these columns; raises for anything that engines compute
    differently."""
    tree = checked(sql)
    compiler = Compiler(maker=Maker(dialect=dialect, zone=zone), sources=columns, tree=tree)
    try:
        query = compiler.query(tree, {}, None)
        return Compiled(
            sql=compiler.with_names(query.sql),
            columns=query.columns,
            equalities=equalities(compiler),
        )
    except RecursionError:
        raise too_deep() from None


@dataclass(slots=True, kw_only=True)
class Compiler:
    maker: Maker
    sources: Columns
    tree: exp.Query
    tables: int = 0
    selects: int = 0
    named: list[tuple[str, str]] = field(default_factory=list)

    @property
    def expressions(self) -> Expressions:
        return Expressions(maker=self.maker)

    def with_names(self, sql: str) -> str:
        """The SQL, preceded by its WITH queries."""
        parts = ", ".join(f"{name} AS ({query})" for name, query in self.named)
        return f"WITH {parts} {sql}" if parts else sql

    def prefix(self) -> str:
        """Prefix of the names of a query's columns. DataFusion confuses the columns of a subquery
        with those of its table if the names are the same."""
        self.selects += 1
        return f"c{self.selects}_"

    def query(self, node: exp.Expr, names: Mapping[str, Query], outer: Scope | None) -> Query:
        while isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            node = node.this
        names = {**names, **self._with(node, names)}
        match node:
            case exp.Select():
                return Select(compiler=self, node=node, names=names, outer=outer).query()
            case exp.SetOperation():
                return self._set(node, names)
        raise refused(node, f"{shown(node)} is no SELECT.", "Write SELECT … FROM ….")

    def _with(self, node: exp.Expr, names: Mapping[str, Query]) -> Mapping[str, Query]:
        if (clause := node.args.get("with_")) is None:
            return {}
        only(clause, "expressions")
        added: dict[str, Query] = {}
        for cte in clause.expressions:
            only(cte, "this", "alias")
            name = cte.alias.casefold()
            if name in SOURCES or name in added:
                raise refused(cte, f"WITH names {cte.alias} again.", "Choose another name.")
            query = self.query(cte.this, {**names, **added}, None)
            place = f"w{len(self.named)}"
            self.named.append((place, query.sql))
            query = _renamed(cte, query, cte.args["alias"].args.get("columns") or ())
            added[name] = replace(query, sql=place)
        return added

    def _set(self, node: exp.SetOperation, names: Mapping[str, Query]) -> Query:
        only(node, "this", "expression", "distinct", "with_")
        sides = [self.query(part, names, None) for part in (node.this, node.expression)]
        if len(sides[0].columns) != len(sides[1].columns):
            raise refused(node, "Its SELECTs have different numbers of columns.", "Select as many.")
        every_row = node.args.get("distinct") is False
        if every_row and not isinstance(node, exp.Union):
            raise refused(node, f"{node.key.upper()} ALL is not part of its SQL.", "Leave ALL out.")
        prefix = self.prefix()
        pairs = zip(sides[0].columns, sides[1].columns, strict=True)
        columns: list[tuple[str, str, SqlType]] = []
        chosen: tuple[list[str], list[str]] = ([], [])
        for number, (left, right) in enumerate(pairs):
            values = [_value(column) for column in (left, right)]
            kind, fitted = self.maker.alike(node, values)
            columns.append((left[0], f"{prefix}{number}", kind))
            for own, value in zip(chosen, fitted, strict=True):
                own.append(f"{value.sql} AS {prefix}{number}")
        word = f" {_SETS[type(node)]}{' ALL' if every_row else ''} "
        both = zip(chosen, sides, strict=True)
        selects = [f"SELECT {', '.join(own)} FROM ({side.sql}) AS u" for own, side in both]
        identity = None if every_row else [name for _, name, _ in columns]
        sql = f"SELECT {', '.join(name for _, name, _ in columns)} FROM ({word.join(selects)}) AS u"
        return Query(sql=sql, columns=columns, identity=identity)

    def table(self, node: exp.Expr, names: Mapping[str, Query]) -> tuple[str, Relation]:
        """A relation of FROM, as SQL with an alias, and its columns."""
        alias = f"t{self.tables}"
        self.tables += 1
        query, name = self._read(node, names)
        alias_node = node.args.get("alias")
        if isinstance(alias_node, exp.TableAlias):
            query = _renamed(node, query, alias_node.args.get("columns") or ())
        columns = [(own, f"{alias}.{sql}", kind) for own, sql, kind in query.columns]
        identity = None if query.identity is None else [f"{alias}.{sql}" for sql in query.identity]
        relation = Relation(name=node.alias or name, columns=columns, identity=identity)
        source = query.sql if " " not in query.sql else f"({query.sql})"
        return f"{source} AS {alias}", relation

    def _read(self, node: exp.Expr, names: Mapping[str, Query]) -> tuple[Query, str]:
        if isinstance(node, exp.Subquery):
            return self.query(node, names, None), ""
        only(node, "this", "alias")
        if (query := names.get(node.name.casefold())) is not None:
            return query, node.name
        return self._source("left" if node.name.lower() == SOURCES[0] else "right"), node.name

    def _source(self, side: SideName) -> Query:
        """A source with the columns that the query uses, cast to match_sql types."""
        every = any(True for _ in self.tree.find_all(exp.Star))
        referenced = {column.name.casefold() for column in self.tree.find_all(exp.Column)}
        joins = self.tree.find_all(exp.Join)
        referenced |= {name.name.casefold() for join in joins for name in using_of(join)}
        columns, chosen = [], []
        for place, (name, column) in enumerate(self.sources[side].items()):
            columns.append((name, f"c{place}", type_of(column)))
            if every or name.casefold() in referenced:
                chosen.append(f"{carried(column, column.sql, self.maker.dialect)} AS c{place}")
        sql = f"SELECT {', '.join(['_id', *chosen])} FROM {side}_rows"
        return Query(sql=sql, columns=columns, identity=["_id"])


def _value(column: tuple[str, str, SqlType]) -> Value:
    name, sql, kind = column
    return Value(sql=sql, type=kind, node=exp.column(name or "?"))


def _renamed(node: exp.Expr, query: Query, names: Sequence[exp.Expr]) -> Query:
    """A query with the column names of `AS q(a, b)`."""
    if not names:
        return query
    if len(names) != len(query.columns):
        raise refused(node, "It names more or fewer columns than there are.", "Name each of them.")
    both = zip(names, query.columns, strict=True)
    columns = [(name.name, sql, kind) for name, (_, sql, kind) in both]
    return replace(query, columns=columns)
