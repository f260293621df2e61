"""Conditions of match_sql, called by `expressions`: AND, OR, NOT, IS, IN, BETWEEN, LIKE, CASE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.reconcile.match_sql.parse import only, refused, shown
from penstock.reconcile.match_sql.types import TEXT, Sort
from penstock.reconcile.match_sql.values import Value

if TYPE_CHECKING:
    from penstock.reconcile.match_sql.expressions import Expressions
    from penstock.reconcile.match_sql.scope import Scope


def joined(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    kind = type(node)
    parts: list[exp.Expr] = []
    rest = [node]
    while rest:
        part = rest.pop()
        if isinstance(part, kind):
            rest += [part.expression, part.this]
        else:
            parts.append(part)
    word = " AND " if kind is exp.And else " OR "
    sql = word.join(compiler.condition(part, scope).sql for part in parts)
    return compiler.maker.boolean(node, f"({sql})")


def negation(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    return compiler.maker.boolean(node, f"(NOT {compiler.condition(node.this, scope).sql})")


def is_null_or_truth(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    if isinstance(node.expression, exp.Null):
        return compiler.maker.boolean(node, f"({compiler.value(node.this, scope).sql} IS NULL)")
    if isinstance(node.expression, exp.Boolean):
        value = compiler.condition(node.this, scope).sql
        word = "TRUE" if node.expression.this else "FALSE"
        return compiler.maker.boolean(node, f"({value} IS {word})")
    raise refused(node, f"{shown(node)} is not part of its SQL.", "Write IS NULL.")


def in_list(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    only(node, "this", "expressions")
    values = [compiler.value(part, scope) for part in (node.this, *node.expressions)]
    _, (value, *others) = compiler.maker.alike(node, values)
    if all(isinstance(part, exp.Literal) for part in node.expressions):
        listed = ", ".join(other.sql for other in others)
        return compiler.maker.boolean(node, f"({value.sql} IN ({listed}))")
    # Of columns DataFusion has answered null for every row once one of them was null.
    equal = " OR ".join(f"{value.sql} = {other.sql}" for other in others)
    return compiler.maker.boolean(node, f"({equal})")


def between(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    only(node, "this", "low", "high")
    value, low, high = (compiler.value(node.args[name], scope) for name in ("this", "low", "high"))
    least = compiler.maker.compared(node, ">=", value, low)
    most = compiler.maker.compared(node, "<=", value, high)
    return compiler.maker.boolean(node, f"({least.sql} AND {most.sql})")


def like(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    escape = node.expression if isinstance(node, exp.Escape) else None
    like = node if escape is None else node.this
    if not isinstance(like, exp.Like):
        raise refused(node, f"{shown(node)} is not part of its SQL.", "Write LIKE.")
    only(like, "this", "expression", "negate")
    text = compiler.value(like.this, scope)
    if text.type.sort not in (Sort.TEXT, Sort.NULL):
        raise refused(node, f"{text} is no text.", "Cast it: CAST(x AS VARCHAR).")
    if not isinstance(like.expression, exp.Literal) or not like.expression.is_string:
        raise refused(
            node,
            "LIKE takes a pattern that is written out.",
            "Write starts_with or contains.",
        )
    pattern = _escaped(node, like.expression.name, "" if escape is None else escape.name)
    sql = compiler.maker.dialect.like(compiler.maker.fits(text, TEXT).sql, pattern)
    return compiler.maker.boolean(node, f"(NOT {sql})" if like.args.get("negate") else sql)


def case(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    if isinstance(node, exp.If):
        conditions = [compiler.condition(node.this, scope).sql]
        results = [node.args["true"], node.args.get("false") or exp.Null()]
    else:
        ifs, subject = node.args["ifs"], node.this
        conditions = [_when(compiler, node, subject, part.this, scope) for part in ifs]
        results = [part.args["true"] for part in ifs]
        results.append(node.args.get("default") or exp.Null())
    kind, values = compiler.maker.alike(node, [compiler.value(part, scope) for part in results])
    *then, other = [value.sql for value in values]
    pieces = [f"WHEN {when} THEN {sql}" for when, sql in zip(conditions, then, strict=True)]
    return Value(sql=f"CASE {' '.join(pieces)} ELSE {other} END", type=kind, node=node)


def _when(
    compiler: Expressions,
    node: exp.Expr,
    subject: exp.Expr | None,
    condition: exp.Expr,
    scope: Scope,
) -> str:
    if subject is None:
        return compiler.condition(condition, scope).sql
    a, b = compiler.value(subject, scope), compiler.value(condition, scope)
    return compiler.maker.compared(node, "=", a, b).sql


def _escaped(node: exp.Expr, pattern: str, escape: str) -> str:
    """A LIKE pattern whose escape is a backslash; one without ESCAPE has none."""
    pieces: list[str] = []
    signs = iter(pattern)
    for sign in signs:
        if escape and sign == escape:
            literal = next(signs, "")
            if literal not in ("%", "_", escape):
                raise refused(
                    node,
                    f"In {pattern!r:.80} {escape} stands before no %, _ or {escape}.",
                    "Double it.",
                )
            pieces.append(f"\\{literal}" if literal in "%_\\" else literal)
        else:
            pieces.append("\\\\" if sign == "\\" else sign)
    return "".join(pieces)
