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
    from collections.abc import Callable, Iterator, Mapping

    from penstock.engines.contract import Engine, Words
    from penstock.reconcile.recipe import Recipe, SideName

SIDES: tuple[SideName, SideName] = ("left", "right")
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


def keys_sql(sql: str, engine: Engine, recipe: Recipe) -> str:
    """What the SQL says of keys, as `l0…` and `r0…`; not yet made distinct, so that it can be cut while it comes."""
    text = written(sql, engine.words)
    names = engine.stream(f"SELECT * FROM ({text}) AS q LIMIT 0").schema.names
    chosen = [f"q.{quoted(name)} AS {alias}" for side in SIDES for alias, name in _keys(side, recipe, names)]
    return f"SELECT {', '.join(chosen)} FROM ({text}) AS q"


def pairs_sql(answer: str, recipe: Recipe, left: str, right: str) -> str:
    """Distinct pairs of ids of what is in the pools, from a table of keys."""
    on = {
        side: " AND ".join(f"q.{side[0]}{n} = {side[0]}.p{n}" for n in range(len(_key(side, recipe)))) for side in SIDES
    }
    return (
        f"SELECT DISTINCT l._id AS l, r._id AS r FROM {answer} AS q JOIN {left} AS l ON {on['left']}"
        f" JOIN {right} AS r ON {on['right']}"
    )


def _key(side: SideName, recipe: Recipe) -> tuple[str, ...]:
    return recipe.sources.left.primary_key if side == "left" else recipe.sources.right.primary_key


def _keys(side: SideName, recipe: Recipe, names: list[str]) -> Iterator[tuple[str, str]]:
    other = _key("right" if side == "left" else "left", recipe)
    for number, key in enumerate(_key(side, recipe)):
        name = f"{side}_{key}" if f"{side}_{key}" in names else key
        if name not in names or (name == key and key in other):
            raise InvalidInput(
                f"match_sql does not return the {side} key {key}.",
                hint=f"Select it as {side}_{key}: SELECT left_src.{key} AS {side}_{key}, …",
            )
        yield f"{side[0]}{number}", name


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
