"""The functions of match_sql by name: how many arguments they take and what they compile to.

`expressions` compiles a call with `call`. Functions over texts and dates are in modules of their
own.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.match_sql import arithmetic, casts, date_functions
from penstock.reconcile.match_sql import text_functions as texts
from penstock.reconcile.match_sql.aggregates import AGGREGATES, WINDOWS
from penstock.reconcile.match_sql.call import Call
from penstock.reconcile.match_sql.dates import day as day_of
from penstock.reconcile.match_sql.parse import refused
from penstock.reconcile.match_sql.types import BOOLEAN, Sort, decimal, whole
from penstock.reconcile.matching.clauses import FULL_SCORE, edit_score

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlglot import exp

    from penstock.reconcile.match_sql.values import Maker, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    least: int
    most: int
    make: Callable[[Call], Value]


def call(maker: Maker, node: exp.Expr, name: str, arguments: Sequence[Value]) -> Value:
    function = FUNCTIONS[name]
    if not function.least <= len(arguments) <= function.most:
        takes = str(function.least)
        takes = takes if function.least == function.most else f"{takes} to {function.most}"
        raise refused(
            node,
            f"{name} takes {takes} arguments, not {len(arguments)}.",
            "Write as many as it takes.",
        )
    return function.make(Call(name=name, node=node, arguments=arguments, maker=maker))


# numbers


def _abs(c: Call) -> Value:
    return arithmetic.negated(c.maker, c.node, c.arguments[0], "abs")


def _round(c: Call) -> Value:
    scale = c.constant_number(1, 0, 38) if len(c.arguments) > 1 else 0
    return arithmetic.rounded(c.maker, c.node, c.arguments[0], scale)


def _truncated(c: Call) -> Value:
    name = {"ceiling": "ceil"}.get(c.name, c.name)
    return arithmetic.truncated(c.maker, c.node, c.arguments[0], name)


def _mod(c: Call) -> Value:
    return arithmetic.whole_divided(c.maker, c.node, "%", *c.arguments)


def _sign(c: Call) -> Value:
    value = c.arguments[0]
    if value.type.sort is not Sort.NUMBER:
        raise refused(c.node, f"{value} is no exact number.", "Cast it: CAST(x AS DECIMAL(20, 2)).")
    zero = f"CAST('0' AS {value.type.sql})"
    above, below = f"WHEN {value.sql} > {zero} THEN 1", f"WHEN {value.sql} < {zero} THEN -1"
    sql = f"CASE {above} {below} WHEN {value.sql} IS NOT NULL THEN 0 END"
    return c.result(f"CAST({sql} AS BIGINT)", whole(1))


# choices


def _coalesce(c: Call) -> Value:
    kind, values = c.maker.alike(c.node, c.arguments)
    return c.result(f"coalesce({', '.join(value.sql for value in values)})", kind)


def _nullif(c: Call) -> Value:
    kind = c.arguments[0].type
    equal = c.maker.compared(c.node, "=", *c.arguments)
    value = c.maker.fits(c.arguments[0], kind)
    return c.result(f"CASE WHEN {equal.sql} THEN NULL ELSE {value.sql} END", kind)


def _extreme(c: Call) -> Value:
    kind, values = c.maker.alike(c.node, c.arguments)
    if kind.sort in (Sort.BOOLEAN, Sort.BYTES, Sort.NULL):
        raise refused(c.node, f"{c.name} takes no {kind.sort}.", "Write CASE WHEN … THEN … END.")
    return c.result(f"{c.name}({', '.join(value.sql for value in values)})", kind)


# ours


def _tolerance(c: Call) -> Value:
    left, right, most = (
        casts.amount(c.maker, c.node, value, *casts.AMOUNT) for value in c.arguments
    )
    return c.result(f"(ABS({left} - {right}) <= {most})", BOOLEAN)


def _percent(c: Call) -> Value:
    left, right = (casts.amount(c.maker, c.node, value, *casts.AMOUNT) for value in c.arguments[:2])
    percent = casts.amount(c.maker, c.node, c.arguments[2], *casts.PERCENT)
    share = f"CAST({percent} * CAST('0.01' AS DECIMAL(3, 2)) AS DECIMAL(9, 6))"
    return c.result(f"(ABS({left} - {right}) <= {share} * ABS({left}))", BOOLEAN)


def _date_match(c: Call) -> Value:
    a, b = (day_of(c.maker, c.node, value) for value in c.arguments[:2])
    days = c.arguments[2]
    if days.type.sort is not Sort.NUMBER:
        raise refused(c.node, f"{days} is no number of days.", "Write a whole number.")
    return c.result(f"(ABS({a} - {b}) <= {days.sql})", BOOLEAN)


def _similarity(c: Call) -> Value:
    score = edit_score(c.dialect, *(c.dialect.lower(c.text(place)) for place in (0, 1)))
    one = f"CAST('{Decimal(1) / FULL_SCORE}' AS DECIMAL(5, 4))"
    kind = decimal(1, 4)
    return c.result(f"CAST(CAST({score} AS DECIMAL(5, 0)) * {one} AS {kind.sql})", kind)


def _one(make: Callable[[Call], Value], least: int = 1, most: int = 0) -> Function:
    return Function(least=least, most=most or least, make=make)


FUNCTIONS: Mapping[str, Function] = {
    "abs": _one(_abs),
    "ceil": _one(_truncated),
    "ceiling": _one(_truncated),
    "char_length": _one(texts.length),
    "character_length": _one(texts.length),
    "coalesce": _one(_coalesce, 1, 50),
    "concat": _one(texts.concat, 1, 50),
    "contains": _one(texts.contains, 2),
    "date_diff": _one(date_functions.date_diff, 3),
    "date_match": _one(_date_match, 3),
    "date_trunc": _one(date_functions.date_trunc, 2),
    "day": _one(date_functions.part),
    "ends_with": _one(texts.contains, 2),
    "floor": _one(_truncated),
    "greatest": _one(_extreme, 1, 50),
    "ifnull": _one(_coalesce, 2),
    "instr": _one(texts.strpos, 2),
    "least": _one(_extreme, 1, 50),
    "left": _one(texts.left, 2),
    "length": _one(texts.length),
    "levenshtein": _one(texts.levenshtein, 2),
    "lower": _one(texts.lower),
    "lpad": _one(texts.pad, 3),
    "ltrim": _one(texts.trim),
    "mod": _one(_mod, 2),
    "month": _one(date_functions.part),
    "nullif": _one(_nullif, 2),
    "pct_match": _one(_percent, 3),
    "quarter": _one(date_functions.part),
    "regexp_matches": _one(texts.regexp_matches, 2),
    "regexp_replace": _one(texts.regexp_replace, 3, 4),
    "replace": _one(texts.replace, 3),
    "right": _one(texts.right, 2),
    "round": _one(_round, 1, 2),
    "rpad": _one(texts.pad, 3),
    "rtrim": _one(texts.trim),
    "sign": _one(_sign),
    "similarity": _one(_similarity, 2),
    "split_part": _one(texts.split_part, 3),
    "starts_with": _one(texts.contains, 2),
    "strpos": _one(texts.strpos, 2),
    "substr": _one(texts.substr, 2, 3),
    "substring": _one(texts.substr, 2, 3),
    "tolerance_match": _one(_tolerance, 3),
    "trim": _one(texts.trim),
    "trunc": _one(_truncated),
    "upper": _one(texts.upper),
    "year": _one(date_functions.part),
}
NAMES = frozenset({*FUNCTIONS, *AGGREGATES, *WINDOWS})
