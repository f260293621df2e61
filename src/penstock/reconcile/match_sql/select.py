"""One SELECT of match_sql: FROM and joins, WHERE, GROUP BY, and the list of columns.

`queries` calls it for each SELECT, and it calls `queries` for the tables and subqueries in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.reconcile.match_sql.aggregates import AGGREGATES
from penstock.reconcile.match_sql.parse import conjuncts, only, refused, shown, using_of
from penstock.reconcile.match_sql.scope import Query, Relation, Scope
from penstock.reconcile.match_sql.types import Sort
from penstock.reconcile.match_sql.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.reconcile.match_sql.expressions import Expressions
    from penstock.reconcile.match_sql.queries import Compiler
    from penstock.reconcile.match_sql.types import SqlType

_PARTS = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "kind")
_JOINS = {"": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}


@dataclass(slots=True, kw_only=True)
class Select:
    compiler: Compiler
    node: exp.Select
    names: Mapping[str, Query]
    outer: Scope | None

    @property
    def expressions(self) -> Expressions:
        return self.compiler.expressions

    def query(self) -> Query:
        only(self.node, *_PARTS)
        if self.node.args.get("kind"):
            raise refused(self.node, "SELECT AS is not part of its SQL.", "Write SELECT.")
        distinct = self.node.args.get("distinct")
        if distinct is not None:
            only(distinct)
        source, scope = self._from()
        where = self._where(scope)
        grouped = self._grouped(scope)
        having = self.node.args.get("having")
        having_sql = "" if having is None else f" HAVING {self._having(having, grouped)}"
        prefix = self.compiler.prefix()
        columns, chosen = self._chosen(grouped, prefix)
        identity: list[str] | None = [name for _, name, _ in columns]
        if distinct is None:
            identity = None
            if grouped.tie_break is not None:
                identity = [f"{prefix}i{number}" for number in range(len(grouped.tie_break))]
                ids = zip(grouped.tie_break, identity, strict=True)
                chosen += [f"{sql} AS {name}" for sql, name in ids]
        keys = ", ".join(value.sql for _, value in grouped.groups or ())
        by = f" GROUP BY {keys}" if keys else ""
        word = "SELECT DISTINCT" if distinct is not None else "SELECT"
        sql = f"{word} {', '.join(chosen)} FROM {source}{where}{by}{having_sql}"
        return Query(sql=sql, columns=columns, identity=identity)

    # FROM

    def _from(self) -> tuple[str, Scope]:
        if self.node.args.get("from_") is None:
            raise refused(self.node, "A SELECT has no FROM.", "Read left_src or right_src.")
        sql, relation = self.compiler.table(self.node.args["from_"].this, self.names)
        scope = Scope(relations=[relation], outer=self.outer)
        for join in self.node.args.get("joins") or ():
            part, relation = self.compiler.table(join.this, self.names)
            names = {one.name.casefold() for one in scope.relations if one.name}
            if relation.name.casefold() in names:
                raise refused(
                    join,
                    f"Two tables are called {relation.name}.",
                    "Give each an alias of its own.",
                )
            how, scope = self._joined(join, scope, relation)
            sql = f"{sql} {how.format(part)}"
        return sql, scope

    def _joined(self, join: exp.Join, scope: Scope, relation: Relation) -> tuple[str, Scope]:
        only(join, "this", "side", "kind", "on", "using")
        side, kind = join.side.upper(), join.kind.upper()
        condition, using = join.args.get("on"), using_of(join)
        both = replace(scope, relations=[*scope.relations, relation])
        if side not in _JOINS or kind not in ("", "INNER", "OUTER", "CROSS"):
            raise refused(join, f"{side} {kind} JOIN is not part of its SQL.", "Write EXISTS (…).")
        if using:
            return self._using(join, scope, both, relation)
        if condition is None:
            if side:
                raise refused(join, f"The {side} JOIN has no condition.", "Write ON ….")
            return "CROSS JOIN {0}", both
        inner = replace(both, outer=None)
        on = self.expressions.condition(condition, inner).sql
        return f"{_JOINS[side]} {{0}} ON {_braced(on)}", both

    def _using(
        self,
        join: exp.Join,
        scope: Scope,
        both: Scope,
        relation: Relation,
    ) -> tuple[str, Scope]:
        merged, conditions = dict(scope.merged), []
        theirs = Scope(relations=[relation])
        for name in using_of(join):
            column = exp.column(exp.to_identifier(name.name, quoted=True))
            a = self.expressions.value(column, replace(scope, outer=None))
            b = self.expressions.value(column, theirs)
            maker = self.compiler.maker
            equality = exp.EQ(this=column, expression=column)
            conditions.append(maker.compared(equality, "=", a, b).sql)
            kind, (x, y) = maker.alike(equality, [a, b])
            merged[name.name.casefold()] = Value(
                sql=f"coalesce({x.sql}, {y.sql})",
                type=kind,
                node=column,
            )
        on = " AND ".join(conditions)
        return f"{_JOINS[join.side.upper()]} {{0}} ON {_braced(on)}", replace(both, merged=merged)

    # WHERE

    def _where(self, scope: Scope) -> str:
        where = self.node.args.get("where")
        if where is None:
            return ""
        parts = [self._part(part, scope) for part in conjuncts(where.this)]
        return f" WHERE {' AND '.join(parts)}"

    def _part(self, node: exp.Expr, scope: Scope) -> str:
        """One operand of the ANDs in WHERE; EXISTS and IN may be a subquery."""
        inner, negated = (node.this.unnest(), True) if isinstance(node, exp.Not) else (node, False)
        word = "NOT " if negated else ""
        if isinstance(inner, exp.Exists):
            query = self.compiler.query(_subquery(inner.this), self.names, scope)
            return f"{word}EXISTS ({query.sql})"
        if isinstance(inner, exp.In) and inner.args.get("query"):
            return self._in(inner, scope, negated=negated)
        return self.expressions.condition(node, scope).sql

    def _in(self, node: exp.In, scope: Scope, *, negated: bool) -> str:
        if negated:
            raise refused(
                node,
                f"{shown(node)} with NOT is never true where the subquery returns a null.",
                "Write NOT EXISTS (SELECT … WHERE …).",
            )
        query = self.compiler.query(_subquery(node.args["query"]), self.names, None)
        if len(query.columns) != 1:
            raise refused(node, "IN takes a subquery of one column.", "Select one.")
        [(name, sql, kind)] = query.columns
        value = self.expressions.value(node.this, scope)
        other = Value(sql=f"s.{sql}", type=kind, node=exp.column(name or "?"))
        value, other = self.compiler.maker.ticks_alike(value, other)
        _, (value, other) = self.compiler.maker.alike(node, [value, other])
        return f"{value.sql} IN (SELECT {other.sql} FROM ({query.sql}) AS s)"

    # GROUP BY and SELECT

    def _grouped(self, scope: Scope) -> Scope:
        group = self.node.args.get("group")
        asks = any(self._asks_for_aggregate(part) for part in self.node.expressions)
        if group is None and not asks and self.node.args.get("having") is None:
            ids = [one.identity for one in scope.relations]
            ties = None if None in ids else [sql for own in ids for sql in own or ()]
            return replace(scope, tie_break=ties, may_window=True)
        keys: list[tuple[exp.Expr, Value]] = []
        if group is not None:
            only(group, "expressions")
            keys = [self._key(part, scope) for part in group.expressions]
        ties = [value.sql for _, value in keys]
        return replace(scope, groups=keys, tie_break=ties, may_aggregate=True, may_window=True)

    def _asks_for_aggregate(self, node: exp.Expr) -> bool:
        for call in node.find_all(exp.Anonymous):
            windowed = isinstance(call.parent, exp.Window) and call.arg_key == "this"
            if call.name.lower() in AGGREGATES and not windowed:
                return True
        return False

    def _key(self, node: exp.Expr, scope: Scope) -> tuple[exp.Expr, Value]:
        chosen = self.node.expressions
        if isinstance(node, exp.Literal) and not node.is_string:
            number = int(Decimal(node.name))
            if not 1 <= number <= len(chosen):
                raise refused(node, f"There is no column {number}.", "Write its name.")
            node = chosen[number - 1].unalias()
        elif isinstance(node, exp.Column) and not node.table and not self._is_column(node, scope):
            name = node.name.casefold()
            aliases = [part.this for part in chosen if part.alias.casefold() == name]
            node = aliases[0] if aliases else node
        value = self.expressions.value(node, scope)
        if value.type.sort in (Sort.OTHER, Sort.NULL):
            raise refused(node, f"{value} cannot be grouped by.", "Choose another column.")
        return node, value

    def _is_column(self, node: exp.Column, scope: Scope) -> bool:
        return bool(scope.find(node.name, "")) or node.name.casefold() in scope.merged

    def _having(self, having: exp.Expr, scope: Scope) -> str:
        return self.expressions.condition(having.this, replace(scope, may_window=False)).sql

    def _chosen(
        self,
        scope: Scope,
        prefix: str,
    ) -> tuple[list[tuple[str, str, SqlType]], list[str]]:
        columns: list[tuple[str, str, SqlType]] = []
        chosen: list[str] = []
        for name, value in self._values(scope):
            inner = f"{prefix}{len(columns)}"
            sql = "CAST(NULL AS VARCHAR)" if value.type.sort is Sort.NULL else value.sql
            columns.append((name, inner, value.type))
            chosen.append(f"{sql} AS {inner}")
        return columns, chosen

    def _values(self, scope: Scope) -> Iterator[tuple[str, Value]]:
        for node in self.node.expressions:
            table = node.table if isinstance(node, exp.Column) else ""
            star = node.this if isinstance(node, exp.Column) else node
            if isinstance(star, exp.Star):
                if any(star.args.values()) or scope.groups is not None:
                    raise refused(
                        node,
                        f"{shown(node)} is not part of its SQL.",
                        "Name the columns.",
                    )
                yield from self._star(node, scope, table)
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            name = node.alias or (inner.name if isinstance(inner, exp.Column) else "")
            yield name, self.expressions.value(inner, scope)

    def _star(self, node: exp.Expr, scope: Scope, table: str) -> Iterator[tuple[str, Value]]:
        if not table:
            for name, value in scope.merged.items():
                yield name, value
        for relation in scope.relations:
            if table and relation.name.casefold() != table.casefold():
                continue
            for name, sql, kind in relation.columns:
                if table or name.casefold() not in scope.merged:
                    yield name, Value(sql=sql, type=kind, node=node)


def _subquery(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Subquery) else node


def _braced(sql: str) -> str:
    """SQL with braces escaped for `str.format`."""
    return sql.replace("{", "{{").replace("}", "}}")
