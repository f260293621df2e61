"""The equalities of match_sql that join both sides, for the reasons of unmatched records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.reconcile.match_sql.parse import SOURCES, conjuncts, using_of
from penstock.reconcile.match_sql.scope import Relation, Scope
from penstock.reconcile.match_sql.types import carried, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.reconcile.match_sql.queries import Compiler
    from penstock.reconcile.recipes.model import SideName


def equalities(compiler: Compiler) -> list[tuple[str, str]]:
    """The equalities that join the two sources, over their relations. Only a single SELECT over
    both sources has any: every returned pair must fulfil them."""
    tree = compiler.tree
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
        scopes[side] = Scope(relations=[_bare(compiler, side, table.alias_or_name)])
    conditions = [join.args["on"] for join in joins if join.args.get("on")]
    conditions += [tree.args["where"].this] if tree.args.get("where") else []
    parts = [part for condition in conditions for part in conjuncts(condition)]
    pairs = [_sided(compiler, part, scopes) for part in parts if isinstance(part, exp.EQ)]
    for name in (name for join in joins for name in using_of(join)):
        equality = exp.EQ(this=exp.column(name.name), expression=exp.column(name.name))
        pairs.append(_compared(compiler, equality, scopes["left"], scopes["right"]))
    return [pair for pair in pairs if pair is not None]


def _bare(compiler: Compiler, side: SideName, name: str) -> Relation:
    """A source without casts."""
    columns = [
        (own, carried(column, column.sql, compiler.maker.dialect), type_of(column))
        for own, column in compiler.sources[side].items()
    ]
    return Relation(name=name, columns=columns, identity=None)


def _sided(
    compiler: Compiler, equality: exp.EQ, scopes: Mapping[SideName, Scope]
) -> tuple[str, str] | None:
    """The two operands of an equality, left side first; None if it does not compare both
    sides."""
    owners = [_owners(part, scopes) for part in (equality.left, equality.right)]
    if owners == [{"left"}, {"right"}]:
        return _compared(compiler, equality, scopes["left"], scopes["right"])
    if owners == [{"right"}, {"left"}]:
        turned = exp.EQ(this=equality.right, expression=equality.left)
        return _compared(compiler, turned, scopes["left"], scopes["right"])
    return None


def _compared(
    compiler: Compiler, equality: exp.EQ, left: Scope, right: Scope
) -> tuple[str, str] | None:
    a = compiler.expressions.value(equality.this, left)
    b = compiler.expressions.value(equality.expression, right)
    a, b = compiler.maker.ticks_alike(a, b)
    _, values = compiler.maker.alike(equality, [a, b])
    failing = compiler.maker.dialect.fail("").split("(")[0]
    if any(failing in value.sql for value in values):
        return None
    return values[0].sql, values[1].sql


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
