"""Compiles queries of match_sql to the SQL of an engine.

Every column gets a generated name, and every SELECT passes on the columns that identify its rows,
so that a window over it has the same order on every engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.reconcile.match_sql.expressions import Expressions, Relation, Scope, only
from penstock.reconcile.match_sql.functions import AGGREGATES, NAMES
from penstock.reconcile.match_sql.parse import SOURCES, parse, refused, shown, too_deep
from penstock.reconcile.match_sql.types import Sort, carried, type_of
from penstock.reconcile.match_sql.values import Maker, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.engines.contract import Dialect
    from penstock.reconcile.match_sql.types import SqlType
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.recipes.model import SideName

    Columns = Mapping[SideName, Mapping[str, Column]]

_SELECT = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "kind")
_JOINS = {"": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}
_SETS: Mapping[type[exp.Expr], str] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """SQL and its result columns: their names, their names in the SQL, and their types. `identity`
    are the columns that identify its rows."""

    sql: str
    columns: Sequence[tuple[str, str, SqlType]]
    identity: Sequence[str] | None


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
            equalities=compiler.equalities(),
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
                return _Select(compiler=self, node=node, names=names, outer=outer).query()
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
        referenced |= {name.name.casefold() for join in joins for name in _using(join)}
        columns, chosen = [], []
        for place, (name, column) in enumerate(self.sources[side].items()):
            columns.append((name, f"c{place}", type_of(column)))
            if every or name.casefold() in referenced:
                chosen.append(f"{carried(column, column.sql, self.maker.dialect)} AS c{place}")
        sql = f"SELECT {', '.join(['_id', *chosen])} FROM {side}_rows"
        return Query(sql=sql, columns=columns, identity=["_id"])

    # reasons

    def equalities(self) -> list[tuple[str, str]]:
        """The equalities that join the two sources, over their relations. Only a single SELECT over
        both sources has any: every returned pair must fulfil them."""
        tree = self.tree
        if not isinstance(tree, exp.Select) or tree.ctes or not tree.args.get("from_"):
            return []
        joins = tree.args.get("joins") or []
        tables = [tree.args["from_"].this, *(join.this for join in joins)]
        if not all(isinstance(table, exp.Table) for table in tables):
            return []
        if sorted(table.name.lower() for table in tables) != list(SOURCES):
            return []
        scopes: dict[SideName, Scope] = {}
        for table in tables:
            side: SideName = "left" if table.name.lower() == SOURCES[0] else "right"
            scopes[side] = Scope(relations=[self._bare(side, table.alias_or_name)])
        conditions = [join.args["on"] for join in joins if join.args.get("on")]
        conditions += [tree.args["where"].this] if tree.args.get("where") else []
        parts = [part for condition in conditions for part in conjuncts(condition)]
        pairs = [self._sided(part, scopes) for part in parts if isinstance(part, exp.EQ)]
        for name in (name for join in joins for name in _using(join)):
            equality = exp.EQ(this=exp.column(name.name), expression=exp.column(name.name))
            pairs.append(self._compared(equality, scopes["left"], scopes["right"]))
        return [pair for pair in pairs if pair is not None]

    def _bare(self, side: SideName, name: str) -> Relation:
        """A source without casts."""
        columns = [
            (own, carried(column, column.sql, self.maker.dialect), type_of(column))
            for own, column in self.sources[side].items()
        ]
        return Relation(name=name, columns=columns, identity=None)

    def _sided(self, equality: exp.EQ, scopes: Mapping[SideName, Scope]) -> tuple[str, str] | None:
        """The two operands of an equality, left side first; None if it does not compare both
        sides."""
        owners = [_owners(part, scopes) for part in (equality.left, equality.right)]
        if owners == [{"left"}, {"right"}]:
            return self._compared(equality, scopes["left"], scopes["right"])
        if owners == [{"right"}, {"left"}]:
            turned = exp.EQ(this=equality.right, expression=equality.left)
            return self._compared(turned, scopes["left"], scopes["right"])
        return None

    def _compared(self, equality: exp.EQ, left: Scope, right: Scope) -> tuple[str, str] | None:
        a = self.expressions.value(equality.this, left)
        b = self.expressions.value(equality.expression, right)
        a, b = self.maker.ticks_alike(a, b)
        _, values = self.maker.alike(equality, [a, b])
        failing = self.maker.dialect.fail("").split("(")[0]
        if any(failing in value.sql for value in values):
            return None
        return values[0].sql, values[1].sql


@dataclass(slots=True, kw_only=True)
class _Select:
    compiler: Compiler
    node: exp.Select
    names: Mapping[str, Query]
    outer: Scope | None

    @property
    def expressions(self) -> Expressions:
        return self.compiler.expressions

    def query(self) -> Query:
        only(self.node, *_SELECT)
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
        condition, using = join.args.get("on"), _using(join)
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
        for name in _using(join):
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


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of AND, flattened."""
    rest = [condition]
    while rest:
        part = rest.pop().unnest()
        if isinstance(part, exp.And):
            rest += [part.expression, part.this]
        else:
            yield part


def _owners(part: exp.Expr, scopes: Mapping[SideName, Scope]) -> set[SideName]:
    """The sides whose columns an expression uses; empty where that is ambiguous."""
    if part.find(exp.Query, exp.Window):
        return set()
    owners: set[SideName] = set()
    for column in part.find_all(exp.Column):
        sides = {side for side, scope in scopes.items() if scope.find(column.name, column.table)}
        if len(sides) != 1:
            return set()
        owners |= sides
    return owners


def _value(column: tuple[str, str, SqlType]) -> Value:
    name, sql, kind = column
    return Value(sql=sql, type=kind, node=exp.column(name or "?"))


def _using(join: exp.Join) -> Sequence[exp.Expr]:
    return join.args.get("using") or ()


def _subquery(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Subquery) else node


def _braced(sql: str) -> str:
    """SQL with braces escaped for `str.format`."""
    return sql.replace("{", "{{").replace("}", "}}")


def _renamed(node: exp.Expr, query: Query, names: Sequence[exp.Expr]) -> Query:
    """A query with the column names of `AS q(a, b)`."""
    if not names:
        return query
    if len(names) != len(query.columns):
        raise refused(node, "It names more or fewer columns than there are.", "Name each of them.")
    both = zip(names, query.columns, strict=True)
    columns = [(name.name, sql, kind) for name, (_, sql, kind) in both]
    return replace(query, columns=columns)
