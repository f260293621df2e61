"""The functions of match_sql by name: their arguments and the SQL they compile to."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.match_sql.parse import refused, shown
from penstock.reconcile.match_sql.types import (
    BOOLEAN,
    DATE,
    TEXT,
    WHOLE_DIGITS,
    Sort,
    SqlType,
    decimal,
    whole,
)
from penstock.reconcile.match_sql.values import (
    AMOUNT,
    DAY_SECONDS,
    PER_SECOND,
    PERCENT,
    Value,
)
from penstock.reconcile.matching.clauses import FULL_SCORE, edit_score
from penstock.reconcile.recipes.patterns import check_replacement, group_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlglot import exp

    from penstock.engines.contract import Dialect
    from penstock.reconcile.match_sql.values import Maker

_LONGEST = 1_000_000_000
_MOST_SHIFT = 1000
_PARTS = {"year": 5, "quarter": 1, "month": 2, "day": 2, "isodow": 1, "doy": 3, "week": 2}
_CLOCK = {"hour": (3600, 24), "minute": (60, 60), "second": (1, 60)}
_COUNT = whole(WHOLE_DIGITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function call: its name and its arguments."""

    name: str
    node: exp.Expr
    arguments: Sequence[Value]
    maker: Maker

    @property
    def dialect(self) -> Dialect:
        return self.maker.dialect

    def result(self, sql: str, kind: SqlType) -> Value:
        return Value(sql=sql, type=kind, node=self.node)

    def text(self, place: int) -> str:
        """The SQL of an argument that is a text."""
        value = self.arguments[place]
        if value.type.sort is Sort.NULL:
            return "CAST(NULL AS VARCHAR)"
        if value.type.sort is not Sort.TEXT:
            raise refused(
                self.node,
                f"{self.name} takes texts, and {value} is none.",
                "Cast it: CAST(x AS VARCHAR).",
            )
        return value.sql

    def constant_text(self, place: int, what: str) -> str:
        """An argument that must be a text literal."""
        constant = self.arguments[place].constant
        if not isinstance(constant, str):
            raise refused(
                self.node,
                f"{what} of {self.name} is {shown(self.arguments[place].node)}, not a text.",
                "Write it out in quotes.",
            )
        return constant

    def constant_number(self, place: int, least: int, most: int) -> int:
        """An argument that must be an integer literal in a range."""
        constant = self.arguments[place].constant
        number = int(constant) if isinstance(constant, Decimal) and constant % 1 == 0 else None
        if number is None or not least <= number <= most:
            raise refused(
                self.node,
                f"{shown(self.arguments[place].node)} in {self.name} is no number that is written"
                f" out, from {least} to {most}.",
                "Write it out.",
            )
        return number

    def count(self, place: int, least: int) -> str:
        """The SQL of an integer argument, from `least` to a billion."""
        value = self.arguments[place]
        if value.type.sort is not Sort.NUMBER or value.type.scale:
            raise refused(
                self.node,
                f"{self.name} takes a whole number, and {value} is none.",
                "Write round(x).",
            )
        if isinstance(value.constant, Decimal):
            return str(self.constant_number(place, least, _LONGEST))
        wrong = f"NOT ({value.sql} BETWEEN {least} AND {_LONGEST})"
        why = f"is no number from {least} to {_LONGEST} for {self.name}"
        number = f"CAST({value.sql} AS BIGINT)"
        return self.maker.guarded(self.node, number, _COUNT, value, wrong, why).sql


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


# texts


def _lower(c: Call) -> Value:
    return c.result(c.dialect.lower(c.text(0)), TEXT)


def _upper(c: Call) -> Value:
    return c.result(c.dialect.upper(c.text(0)), TEXT)


def _length(c: Call) -> Value:
    return c.result(f"CAST(length({c.text(0)}) AS BIGINT)", whole(10))


def _trim(c: Call) -> Value:
    where = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[c.name]
    return c.result(f"TRIM({where} ' ' FROM {c.text(0)})", TEXT)


def _substr(c: Call) -> Value:
    more = f", {c.count(2, 0)}" if len(c.arguments) > 2 else ""
    return c.result(f"substr({c.text(0)}, {c.count(1, 1)}{more})", TEXT)


def _left(c: Call) -> Value:
    return c.result(f"substr({c.text(0)}, 1, {c.count(1, 0)})", TEXT)


def _right(c: Call) -> Value:
    text = c.text(0)
    start = f"GREATEST(CAST(length({text}) AS BIGINT) - {c.count(1, 0)}, 0) + 1"
    return c.result(f"CASE WHEN {text} IS NOT NULL THEN substr({text}, {start}) END", TEXT)


def _pad(c: Call) -> Value:
    fill = c.constant_text(2, "The fill")
    if not fill:
        raise refused(c.node, f"The fill of {c.name} is empty.", "Write at least one character.")
    c.constant_number(1, 0, 10_000)
    return c.result(f"{c.name}({c.text(0)}, {c.count(1, 0)}, {c.text(2)})", TEXT)


def _replace(c: Call) -> Value:
    text, piece, to = (c.text(place) for place in range(3))
    return c.result(f"replace({text}, {piece}, {to})", TEXT)


def _strpos(c: Call) -> Value:
    return c.result(f"CAST(strpos({c.text(0)}, {c.text(1)}) AS BIGINT)", whole(10))


def _contains(c: Call) -> Value:
    return c.result(f"{c.name}({c.text(0)}, {c.text(1)})", BOOLEAN)


def _split_part(c: Call) -> Value:
    if not c.constant_text(1, "The separator"):
        raise refused(c.node, "The separator of split_part is empty.", "Write a character.")
    c.constant_number(2, 1, 10_000)
    return c.result(f"split_part({c.text(0)}, {c.text(1)}, {c.count(2, 1)})", TEXT)


def _concat(c: Call) -> Value:
    texts = " || ".join(f"coalesce({c.text(place)}, '')" for place in range(len(c.arguments)))
    return c.result(f"({texts})", TEXT)


def _pattern(c: Call) -> str:
    pattern = c.constant_text(1, "The pattern")
    try:
        group_count(pattern)
    except ValueError as e:
        raise refused(
            c.node,
            f"{c.name}: {e}.",
            "The reference lists what patterns have.",
        ) from None
    return pattern


def _regexp_matches(c: Call) -> Value:
    return c.result(c.dialect.matches(c.text(0), _pattern(c)), BOOLEAN)


def _regexp_replace(c: Call) -> Value:
    pattern, to = _pattern(c), c.constant_text(2, "The replacement")
    if len(c.arguments) < 4 or c.arguments[3].constant != "g":
        raise refused(
            c.node,
            "regexp_replace replaces every match.",
            "Write 'g' as its fourth argument.",
        )
    try:
        check_replacement(pattern, to)
    except ValueError as e:
        raise refused(c.node, f"regexp_replace: {e}.", r"Write \1 for a group.") from None
    return c.result(c.dialect.replace(c.text(0), pattern, to), TEXT)


def _levenshtein(c: Call) -> Value:
    return c.result(c.dialect.edits(c.text(0), c.text(1)), whole(10))


# numbers


def _abs(c: Call) -> Value:
    return c.maker.negated(c.node, c.arguments[0], "abs")


def _round(c: Call) -> Value:
    scale = c.constant_number(1, 0, 38) if len(c.arguments) > 1 else 0
    return c.maker.rounded(c.node, c.arguments[0], scale)


def _truncated(c: Call) -> Value:
    name = {"ceiling": "ceil"}.get(c.name, c.name)
    return c.maker.truncated(c.node, c.arguments[0], name)


def _mod(c: Call) -> Value:
    return c.maker.whole_divided(c.node, "%", *c.arguments)


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


# dates


def date_part(maker: Maker, node: exp.Expr, unit: str, value: Value) -> Value:
    """EXTRACT(unit FROM value)."""
    if unit in _PARTS:
        day = maker.as_date(node, value, safe=False) if value.type.sort is not Sort.DATE else value
        if value.type.sort not in (Sort.DATE, Sort.TIMESTAMP):
            raise refused(node, f"{value} is no date.", "Cast it: CAST(x AS DATE).")
        sql = f"CAST(EXTRACT({unit} FROM {day.sql}) AS BIGINT)"
        return Value(sql=sql, type=whole(_PARTS[unit]), node=node)
    if unit not in _CLOCK:
        names = ", ".join([*_PARTS, *_CLOCK])
        raise refused(node, f"There is no part {unit[:40]} of a date.", f"There are: {names}.")
    if value.type.sort is not Sort.TIMESTAMP or value.type.zoned:
        raise refused(
            node,
            f"{value} is no timestamp without a zone.",
            "Take the parts of the clock in the source's query.",
        )
    unit_seconds, count = _CLOCK[unit]
    seconds = maker.dialect.floor_div(value.sql, PER_SECOND[value.type.unit])
    days = maker.dialect.floor_div(seconds, DAY_SECONDS)
    sql = f"(({seconds} - {DAY_SECONDS} * {days}) % {unit_seconds * count})"
    sql = maker.dialect.floor_div(sql, unit_seconds)
    return Value(sql=f"CAST({sql} AS BIGINT)", type=whole(2), node=node)


def _date_part(c: Call) -> Value:
    return date_part(c.maker, c.node, c.name, c.arguments[0])


def _date_diff(c: Call) -> Value:
    unit = c.constant_text(0, "The unit").lower()
    days = [c.maker.day(c.node, value) for value in c.arguments[1:] if _is_dated(c, value)]
    if unit == "day":
        return c.result(f"CAST({days[1]} - {days[0]} AS BIGINT)", whole(8))
    if unit not in ("month", "year"):
        raise refused(c.node, f"date_diff has no unit {unit[:40]}.", "Write day, month or year.")
    months = [_months(c, value, unit) for value in c.arguments[1:]]
    return c.result(f"({months[1]} - {months[0]})", whole(6))


def _is_dated(c: Call, value: Value) -> bool:
    if value.type.sort not in (Sort.DATE, Sort.TIMESTAMP):
        raise refused(c.node, f"{value} is no date.", "Cast it: CAST(x AS DATE).")
    return True


def _months(c: Call, value: Value, unit: str) -> str:
    year = date_part(c.maker, c.node, "year", value).sql
    month = date_part(c.maker, c.node, "month", value).sql
    return year if unit == "year" else f"({year} * 12 + {month})"


def _date_trunc(c: Call) -> Value:
    unit, value = c.constant_text(0, "The unit").lower(), c.arguments[1]
    if value.type.sort is not Sort.DATE:
        raise refused(c.node, f"date_trunc takes a date, and {value} is none.", "CAST(x AS DATE).")
    day, dialect = c.dialect.day(value.sql), c.dialect
    names = ("day", "doy", "isodow")
    part = {name: f"CAST(EXTRACT({name} FROM {value.sql}) AS INTEGER)" for name in names}
    match unit:
        case "month":
            first = f"{day} - {part['day']} + 1"
        case "week":
            first = f"{day} - {part['isodow']} + 1"
        case "year":
            first = f"{day} - {part['doy']} + 1"
        case "day":
            first = day
        case _:
            raise refused(
                c.node,
                f"date_trunc has no unit {unit[:40]}.",
                "Write day, week, month or year.",
            )
    return c.result(dialect.date(f"({first})"), DATE)


# ours


def _tolerance(c: Call) -> Value:
    left, right, most = (c.maker.amount(c.node, value, *AMOUNT) for value in c.arguments)
    return c.result(f"(ABS({left} - {right}) <= {most})", BOOLEAN)


def _percent(c: Call) -> Value:
    left, right = (c.maker.amount(c.node, value, *AMOUNT) for value in c.arguments[:2])
    percent = c.maker.amount(c.node, c.arguments[2], *PERCENT)
    share = f"CAST({percent} * CAST('0.01' AS DECIMAL(3, 2)) AS DECIMAL(9, 6))"
    return c.result(f"(ABS({left} - {right}) <= {share} * ABS({left}))", BOOLEAN)


def _date_match(c: Call) -> Value:
    a, b = (c.maker.day(c.node, value) for value in c.arguments[:2])
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
    "char_length": _one(_length),
    "character_length": _one(_length),
    "coalesce": _one(_coalesce, 1, 50),
    "concat": _one(_concat, 1, 50),
    "contains": _one(_contains, 2),
    "date_diff": _one(_date_diff, 3),
    "date_match": _one(_date_match, 3),
    "date_trunc": _one(_date_trunc, 2),
    "day": _one(_date_part),
    "ends_with": _one(_contains, 2),
    "floor": _one(_truncated),
    "greatest": _one(_extreme, 1, 50),
    "ifnull": _one(_coalesce, 2),
    "instr": _one(_strpos, 2),
    "least": _one(_extreme, 1, 50),
    "left": _one(_left, 2),
    "length": _one(_length),
    "levenshtein": _one(_levenshtein, 2),
    "lower": _one(_lower),
    "lpad": _one(_pad, 3),
    "ltrim": _one(_trim),
    "mod": _one(_mod, 2),
    "month": _one(_date_part),
    "nullif": _one(_nullif, 2),
    "pct_match": _one(_percent, 3),
    "quarter": _one(_date_part),
    "regexp_matches": _one(_regexp_matches, 2),
    "regexp_replace": _one(_regexp_replace, 3, 4),
    "replace": _one(_replace, 3),
    "right": _one(_right, 2),
    "round": _one(_round, 1, 2),
    "rpad": _one(_pad, 3),
    "rtrim": _one(_trim),
    "sign": _one(_sign),
    "similarity": _one(_similarity, 2),
    "split_part": _one(_split_part, 3),
    "starts_with": _one(_contains, 2),
    "strpos": _one(_strpos, 2),
    "substr": _one(_substr, 2, 3),
    "substring": _one(_substr, 2, 3),
    "tolerance_match": _one(_tolerance, 3),
    "trim": _one(_trim),
    "trunc": _one(_truncated),
    "upper": _one(_upper),
    "year": _one(_date_part),
}
AGGREGATES = frozenset({"bool_and", "bool_or", "count", "max", "min", "sum"})
WINDOWS = frozenset({"dense_rank", "first_value", "lag", "lead", "rank", "row_number"})
NAMES = frozenset({*FUNCTIONS, *AGGREGATES, *WINDOWS})


def aggregate(
    maker: Maker,
    node: exp.Expr,
    name: str,
    value: Value | None,
    *,
    distinct: bool,
) -> Value:
    """An aggregate without its window; `count(*)` has no argument."""
    if value is None or name == "count":
        what = "*" if value is None else f"DISTINCT {value.sql}" if distinct else value.sql
        return Value(sql=f"COUNT({what})", type=_COUNT, node=node)
    sort = value.type.sort
    if distinct:
        raise refused(node, f"{name}(DISTINCT …) is not part of its SQL.", "Group in a subquery.")
    if name == "sum":
        if sort is not Sort.NUMBER:
            raise refused(
                node,
                f"{name} takes exact numbers, and {value} is none.",
                "CAST(x AS DECIMAL(20, 2)).",
            )
        if value.type.digits + value.type.scale > _MOST_SUMMED:
            raise refused(
                node,
                f"A sum of {value} may have more than 38 digits.",
                f"Cast it to {_MOST_SUMMED} digits at most: CAST(x AS DECIMAL(20, 2)).",
            )
        exact = maker.fits(value, decimal(value.type.digits, value.type.scale))
        return Value(
            sql=f"SUM({exact.sql})",
            type=decimal(value.type.digits + 10, value.type.scale),
            node=node,
        )
    if name in ("bool_and", "bool_or"):
        if sort is not Sort.BOOLEAN:
            raise refused(node, f"{value} is no boolean.", "Write a comparison.")
    elif sort is Sort.DOUBLE:  # DataFusion loses NaN and infinities in groups
        raise refused(node, f"{name} takes no {value}.", "Cast it: CAST(x AS DECIMAL(20, 2)).")
    elif sort in (Sort.BOOLEAN, Sort.BYTES, Sort.OTHER, Sort.NULL):
        raise refused(node, f"{name} takes no {value}.", "Write bool_or(x), or CASE.")
    return Value(sql=f"{name.upper()}({value.sql})", type=value.type, node=node)


_MOST_SUMMED = 28
"""Digits of numbers whose sums fit 38, of up to ten billion rows."""
MOST_SHIFT = _MOST_SHIFT
