"""Checks the functions that a query calls against the allowlist, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.guard.allowed_functions import FUNCTIONS, TABLE_FUNCTIONS
from penstock.guard.allowed_nodes import NAMELESS, NAMELESS_IN_FROM
from penstock.guard.errors import FunctionRefused
from penstock.guard.size_limits import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_FROM_POSITIONS = (exp.Table, exp.Lateral, exp.From, exp.Join)


def check_calls(nodes: Iterable[exp.Expr], dialect: str) -> None:
    """Refuse a function that is not listed, is not allowed in FROM, or has a quoted name."""
    for node in nodes:
        if isinstance(node, exp.Func):
            _check_call(node, dialect)


def _check_call(node: exp.Func, dialect: str) -> None:
    in_from = isinstance(node.parent, _FROM_POSITIONS) and node.arg_key in ("this", "rows_from")
    qualifiers = _qualifiers(node)
    if not qualifiers and type(node) in (NAMELESS_IN_FROM if in_from else NAMELESS):
        return
    own_name = node.name if isinstance(node, exp.Anonymous) else type(node).sql_name()
    name = ".".join([*qualifiers, own_name])[:200]
    listed = TABLE_FUNCTIONS[dialect] if in_from else FUNCTIONS[dialect]
    if not isinstance(node, exp.Anonymous) or not _is_plain(node) or name.lower() not in listed:
        raise FunctionRefused(
            f"Function {name} is not on the list of allowed functions"
            f"{' in FROM' if in_from else ''}.",
            hint="A query may call the listed pure functions, without quotes and without a schema"
            " qualifier.",
            function=name,
            **place_of(node),
        )


def _is_plain(node: exp.Anonymous) -> bool:
    """Whether the name is unquoted and ASCII; TABLE(…) may contain only a call of SEQUENCE."""
    if isinstance(node.this, exp.Identifier) or not node.name.isascii():
        return False
    if node.name.upper() != "TABLE":
        return True
    return [(type(inner), inner.name.upper()) for inner in node.expressions] == [
        (exp.Anonymous, "SEQUENCE")
    ]


def _qualifiers(node: exp.Func) -> list[str]:
    """`a` and `b` of `a.b.f()`, which the tree stores as dots around the call or as parts of a
    table."""
    parent = node.parent
    if isinstance(parent, exp.Table) and node is parent.this:
        return [part.name for part in (parent.args.get("catalog"), parent.args.get("db")) if part]
    if isinstance(parent, exp.Dot) and node is parent.expression:
        return _path(parent.this)
    return []


def _path(node: exp.Expr) -> list[str]:
    return (
        [*_path(node.this), node.expression.name]
        if isinstance(node, exp.Dot)
        else [node.name or "…"]
    )
