"""match_sql: free SQL over `left_src` and `right_src` that returns both keys.

The guard lets one SELECT of listed functions over these two tables pass. Our own functions (`tolerance_match`,
`pct_match`, `date_match`, `similarity`) are not of any engine: they are carried past the guard under a mark and then
written out as expressions, which are exact and the same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from penstock.guard.errors import SqlUnreadable
from penstock.guard.sql import check
from penstock.guard.tables import TableName, TablePolicy
from penstock.kit.errors import InvalidInput
from penstock.reconcile.amounts import WIDE
from penstock.reconcile.clauses import FULL_SCORE, edit_score, quoted
from penstock.reconcile.column import FREE_SCALE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.engines.contract import Engine, Words
    from penstock.reconcile.recipe import Recipe, SideName

_MARK = "penstock:"
_TABLES = TablePolicy.of("duckdb", [TableName(name="left_src"), TableName(name="right_src")])


def _tolerance(_words: Words, a: str, b: str, t: str) -> str:
    return f"(ABS({_amount(a)} - {_amount(b)}) <= {_amount(t)})"


def _percent(_words: Words, a: str, b: str, p: str) -> str:
    share = f"CAST({p} AS DECIMAL(7, 4)) * CAST('0.01' AS DECIMAL(3, 2))"
    return f"(ABS({_amount(a)} - {_amount(b)}) <= CAST({share} AS DECIMAL(9, 6)) * ABS({_amount(a)}))"


def _date(words: Words, a: str, b: str, days: str) -> str:
    return f"(ABS({words.day(a)} - {words.day(b)}) <= {days})"


def _similarity(words: Words, a: str, b: str) -> str:
    score = edit_score(words, f"LOWER(CAST({a} AS VARCHAR))", f"LOWER(CAST({b} AS VARCHAR))")
    return f"(CAST({score} AS DOUBLE) / {FULL_SCORE})"


def _amount(sql: str) -> str:
    return f"CAST({sql} AS DECIMAL({WIDE}, {FREE_SCALE}))"


FUNCTIONS: Mapping[str, tuple[int, Callable[..., str]]] = {
    "date_match": (3, _date),
    "pct_match": (3, _percent),
    "similarity": (2, _similarity),
    "tolerance_match": (3, _tolerance),
}


def checked(sql: str) -> str:
    """The SQL as it may run, with our functions under their marks; raises what the guard refuses."""
    return check(_marked(sql), "duckdb", tables=_TABLES).sql


def written(sql: str, words: Words) -> str:
    """The SQL as an engine understands it."""
    tree = sqlglot.parse_one(checked(sql), dialect="duckdb")
    return tree.transform(lambda node: _expanded(node, words)).sql(dialect="duckdb")


def pairs_sql(sql: str, engine: Engine, recipe: Recipe) -> str:
    """Distinct pairs of ids, from what the SQL says of keys."""
    text = written(sql, engine.words)
    names = engine.stream(f"SELECT * FROM ({text}) AS q LIMIT 0").schema.names
    left = _on("left", recipe, names, "l")
    right = _on("right", recipe, names, "r")
    return f"SELECT DISTINCT l._id AS l, r._id AS r FROM ({text}) AS q JOIN l ON {left} JOIN r ON {right}"


def _on(side: SideName, recipe: Recipe, names: list[str], alias: str) -> str:
    other = recipe.sources.right if side == "left" else recipe.sources.left
    found = []
    for number, key in enumerate(getattr(recipe.sources, side).primary_key):
        name = f"{side}_{key}" if f"{side}_{key}" in names else key
        if name not in names or (name == key and key in other.primary_key):
            raise InvalidInput(
                f"match_sql does not return the {side} key {key}.",
                hint=f"Select it as {side}_{key}: SELECT left_src.{key} AS {side}_{key}, …",
            )
        found.append(f"q.{quoted(name)} = {alias}.p{number}")
    return " AND ".join(found)


def _marked(sql: str) -> str:
    try:
        trees = sqlglot.parse(sql, dialect="duckdb")
    except sqlglot.ParseError:
        return sql
    except RecursionError:
        raise SqlUnreadable("The SQL is nested too deeply.") from None
    if len(trees) != 1 or trees[0] is None or not any(_is_ours(node) for node in trees[0].walk()):
        return sql
    return trees[0].transform(_mark).sql(dialect="duckdb")


def _is_ours(node: object) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS


def _mark(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Anonymous) or node.name.lower() not in FUNCTIONS:
        return node
    name = node.name.lower()
    count, _ = FUNCTIONS[name]
    if len(node.expressions) != count:
        raise InvalidInput(f"{name} takes {count} arguments, not {len(node.expressions)}.")
    return exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string(_MARK + name), *node.expressions])


def _expanded(node: exp.Expr, words: Words) -> exp.Expr:
    if not isinstance(node, exp.Func):
        return node
    arguments = list(node.iter_expressions())
    mark = arguments[0].name if arguments and isinstance(arguments[0], exp.Literal) else ""
    entry = FUNCTIONS.get(mark.removeprefix(_MARK)) if mark.startswith(_MARK) else None
    if entry is None:
        return node
    texts = [argument.sql(dialect="duckdb") for argument in arguments[1:]]
    return sqlglot.parse_one(entry[1](words, *texts), dialect="duckdb")
