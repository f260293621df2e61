"""Expressions of match_sql with what they mean, in plain Python, from docs/reference/match-sql.md.

A `Piece` is SQL beside a function of a row that computes the same, exactly and slowly. Numbers are
`Decimal`, timestamps whole ticks. `Failed` is a value that the reference says ends the run.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.reconcile.oracle.values import edits, lower, similarity

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    Row = dict[str, Any]

EXACT = Context(prec=400)
EPOCH = date(1970, 1, 1)
ROWS = 24
DAY_TICKS = 86_400 * 10**6


class Failed(Exception):
    """The reference says that this ends the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """`scale` are the decimals of a number's type; `may_fail` says that some value may end the
    run."""

    sql: str
    of: Callable[[Row], Any]
    scale: int = 0
    may_fail: bool = False


def _decimals(texts: Sequence[str | None], precision: int, scale: int) -> pa.Array:
    values = [None if text is None else Decimal(text) for text in texts]
    return pa.array(values, pa.decimal128(precision, scale))


POOLS: dict[str, Callable[[random.Random], pa.Array]] = {}


def _pool(values: Sequence[Any], make: Callable[[list[Any]], pa.Array]) -> Callable[..., pa.Array]:
    return lambda chance: make([chance.choice([None, *values, *values]) for _ in range(ROWS)])


TEXTS = [
    *(
        "",
        " ",
        "a",
        "b",
        "ab",
        "A",
        "Straße",
        "STRASSE",
        "İx",
        "ΟΔΟΣ",
        "e\u0301",
        "é",
        "a\\b",
        "%",
        "_a",
    ),
    *(
        "10%",
        "  x ",
        "\tx",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "a\nb",
        "x-1-y",
        "ﬁ",
        "null",
        "'",
    ),
]
NUMBER_TEXTS = [
    "1",
    "01",
    " 2 ",
    "3.7",
    "-4",
    "1e3",
    "",
    "x",
    "12.345",
    "+5",
    "99999999999",
    "0x10",
    "-0.00",
]
DATE_TEXTS = [
    "2024-02-29",
    "2023-02-29",
    "0001-01-01",
    "9999-12-31",
    "2024-1-1",
    "2024-01-31 ",
    "x",
    "0000-01-01",
]
DATES = [
    date(2024, 2, 29),
    date(2023, 12, 31),
    date(1, 1, 1),
    date(9999, 12, 31),
    EPOCH,
    date(1969, 12, 31),
]
TICKS = [0, -1, 1, 1_711_852_200_000_000, -62_135_596_800_000_000, 253_402_214_399_999_999, 999_999]
DOUBLES = [
    0.5,
    -0.0,
    0.0,
    1.5,
    2.5,
    -2.5,
    0.1,
    1e300,
    -1e-300,
    math.inf,
    -math.inf,
    math.nan,
    1 / 3,
    123456.789,
]
COLUMNS = {
    "i": _pool([7, -7, 0, 1, 2, 2**63 - 1, -(2**63), 100], lambda v: pa.array(v, pa.int64())),
    "j": _pool([2, -2, 0, 3, 2**31 - 1, -(2**31)], lambda v: pa.array(v, pa.int32())),
    "u": _pool([0, 1, 2**64 - 1, 10], lambda v: pa.array(v, pa.uint64())),
    "d": _pool(
        ["1.005", "-2.505", "0.000", "0.004", "999999999.995", "-0.005"],
        lambda v: _decimals(v, 12, 3),
    ),
    "e": _pool(
        ["3", "-1", "0.3", "0", "0.00000001", "-123456789012.5"],
        lambda v: _decimals(v, 20, 8),
    ),
    "w": _pool(["9" * 38, "-" + "9" * 38, "5", "0"], lambda v: _decimals(v, 38, 0)),
    "f": _pool(DOUBLES, lambda v: pa.array(v, pa.float64())),
    "g": _pool(DOUBLES, lambda v: pa.array(v, pa.float64())),
    "s": _pool(TEXTS, pa.array),
    "t": _pool(TEXTS, pa.array),
    "n": _pool(NUMBER_TEXTS, pa.array),
    "dt": _pool(DATE_TEXTS, pa.array),
    "b": _pool([True, False], lambda v: pa.array(v, pa.bool_())),
    "c": _pool([True, False], lambda v: pa.array(v, pa.bool_())),
    "day": _pool(DATES, lambda v: pa.array(v, pa.date32())),
    "till": _pool(DATES, lambda v: pa.array(v, pa.date32())),
    "ts": _pool(TICKS, lambda v: pa.array(v, pa.int64()).cast(pa.timestamp("us"))),
    "ts2": _pool(TICKS, lambda v: pa.array(v, pa.int64()).cast(pa.timestamp("us"))),
    "tz": _pool(TICKS, lambda v: pa.array(v, pa.int64()).cast(pa.timestamp("us", "UTC"))),
}
NUMBERS = {"i": 0, "j": 0, "u": 0, "d": 3, "e": 8, "w": 0}


def table(chance: random.Random) -> pa.Table:
    """Rows of hostile values; as many nulls as any of them."""
    columns = {name: pool(chance) for name, pool in COLUMNS.items()}
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), **columns})


def rows(values: pa.Table) -> list[Row]:
    """The rows as the pieces read them."""
    columns = {}
    for name in values.column_names:
        column = values.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        read = column.to_pylist()
        exact = name in NUMBERS
        columns[name] = [Decimal(v) if exact and v is not None else v for v in read]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def strict(function: Callable[..., Any], *pieces: Piece) -> Callable[[Row], Any]:
    """A function of the values of pieces, null where one of them is. In a lenient row what
    fails beside a null is null: an engine need not compute it."""

    def of(row: Row) -> Any:
        values, fails = [], False
        for piece in pieces:
            try:
                values.append(piece.of(row))
            except Failed:
                if not row.get("lenient"):
                    raise
                fails = True
        if any(value is None for value in values):
            return None
        if fails:
            raise Failed
        return function(*values)

    return of


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    def of(*values: Decimal) -> Any:
        with localcontext(EXACT):
            return function(*values)

    return of


def one_zero(number: float) -> float:
    return math.nan if math.isnan(number) else number + 0.0


def rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)


def ordered(value: Any) -> Any:
    """What a value is compared by: NaN after all numbers, texts by their bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def compared(operator: str, a: Any, b: Any) -> bool:
    x, y = ordered(a), ordered(b)
    return {
        "=": lambda: x == y,
        "<>": lambda: x != y,
        "<": lambda: x < y,
        "<=": lambda: x <= y,
        ">": lambda: x > y,
        ">=": lambda: x >= y,
    }[operator]()


def stamp(ticks: int) -> str:
    at = datetime(1970, 1, 1) + timedelta(microseconds=ticks)  # noqa: DTZ001 - it has no zone
    return f"{at.year:04}-{at:%m-%dT%H:%M:%S}.{at.microsecond:06}"


def double_text(number: float) -> str:
    return f"{Decimal(repr(number or 0.0)):f}" if math.isfinite(number) else str(number)


def day_of(ticks: int) -> date:
    return EPOCH + timedelta(days=ticks // DAY_TICKS)


def number_of_text(text: str, digits: int, scale: int) -> Decimal | None:
    decimals = rf"([.][0-9]{{1,{scale}}})?" if scale else ""
    if not re.fullmatch(rf"[+-]?[0-9]{{1,38}}{decimals}", text):
        return None
    value = Decimal(text)
    return value if abs(value) < Decimal(10) ** digits else None


def date_of_text(text: str) -> date | None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def failing(value: Any) -> Any:
    if value is None:
        raise Failed
    return value


def moved(at: date, days: Decimal) -> date:
    try:
        return at + timedelta(days=int(days))
    except OverflowError:
        raise Failed from None


def upper(text: str) -> str:
    """One character for one."""
    return "".join(
        "ẞ" if sign == "ß" else sign if len(sign.upper()) > 1 else sign.upper() for sign in text
    )


class Generator:
    """Expressions of each sort, by chance; `depth` bounds them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def any_sort(self, depth: int) -> Piece:
        sorts = [self.number, self.text, self.boolean, self.date, self.double, self.ticks]
        return self.chance.choice(sorts)(depth)

    def infallible(self, make: Callable[[int], Piece], depth: int) -> Piece:
        """A piece that ends no run: it stands where engines may compute it or not."""
        while (piece := make(depth)).may_fail:
            pass
        return piece

    # numbers

    def number(self, depth: int) -> Piece:
        if depth <= 0:
            name = self.chance.choice(["i", "j", "d", "d", "e", "u", "w", ""])
            if not name:
                text = self.chance.choice(["0", "1", "2", "7", "0.5", "1.25", "100", "0.001"])
                scale = len(text.partition(".")[2])
                return Piece(sql=text, of=lambda _: Decimal(text), scale=scale)
            return Piece(sql=name, of=lambda row: row[name], scale=NUMBERS[name])
        makes = [self._added, self._added, self._multiplied, self._divided, self._rounded]
        makes += [
            self._of_text,
            self._of_dates,
            self._cast_number,
            self._narrowed,
            self._choice_of_numbers,
        ]
        return self.chance.choice(makes)(depth - 1)

    def _added(self, depth: int) -> Piece:
        a, b, operator = self.number(depth), self.number(depth), self.chance.choice("+-")
        return Piece(
            sql=f"({a.sql} {operator} {b.sql})",
            of=strict(exact(lambda x, y: x + y if operator == "+" else x - y), a, b),
            scale=max(a.scale, b.scale),
            may_fail=a.may_fail or b.may_fail,
        )

    def _multiplied(self, depth: int) -> Piece:
        a, b = self.number(depth), self.number(depth)
        of = strict(exact(lambda x, y: x * y), a, b)
        may_fail = a.may_fail or b.may_fail
        return Piece(sql=f"({a.sql} * {b.sql})", of=of, scale=a.scale + b.scale, may_fail=may_fail)

    def _divided(self, depth: int) -> Piece:
        a, b = self.number(depth), self.number(depth)
        operator = self.chance.choice(["/", "/", "%", "//"])
        if b.sql[0].isalpha() and self.chance.random() < 0.7:
            inner = b
            b = Piece(
                sql=f"nullif({b.sql}, 0)",
                of=lambda row: inner.of(row) or None,
                scale=b.scale,
                may_fail=b.may_fail,
            )
        else:
            b = Piece(sql=b.sql, of=b.of, scale=b.scale, may_fail=True)
        scale = max(a.scale, b.scale, 6 if operator == "/" else 0)
        if operator == "//" and scale:
            operator = "%"

        def quotient(x: Decimal, y: Decimal) -> Decimal:
            if not y:
                raise Failed
            if operator == "%":
                return EXACT.remainder(x, y)
            return EXACT.divide_int(x, y) if operator == "//" else self._quotient(x, y, scale)

        may_fail = a.may_fail or b.may_fail
        return Piece(
            sql=f"({a.sql} {operator} {b.sql})",
            of=strict(quotient, a, b),
            scale=scale,
            may_fail=may_fail,
        )

    def _quotient(self, x: Decimal, y: Decimal, scale: int) -> Decimal:
        """Rounded once, from the exact fraction."""
        (xn, xd), (yn, yd) = x.as_integer_ratio(), y.as_integer_ratio()
        above, below = abs(xn * yd) * 10**scale, abs(xd * yn)
        places = (2 * above + below) // (2 * below)
        sign = -1 if (x < 0) != (y < 0) else 1
        return Decimal(sign * places).scaleb(-scale, EXACT)

    def _rounded(self, depth: int) -> Piece:
        a = self.number(depth)
        name = self.chance.choice(["round", "round2", "floor", "ceil", "trunc", "abs", "-", "sign"])
        whole = {"floor": "ROUND_FLOOR", "ceil": "ROUND_CEILING", "trunc": "ROUND_DOWN"}
        if name == "round2":
            scale = min(2, a.scale)
            of = strict(lambda x: rounded(x, scale), a)
            return Piece(sql=f"round({a.sql}, 2)", of=of, scale=scale, may_fail=a.may_fail)
        if name == "round":
            return Piece(
                sql=f"round({a.sql})",
                of=strict(lambda x: rounded(x, 0), a),
                may_fail=a.may_fail,
            )
        if name in whole:
            of = strict(lambda x: x.quantize(Decimal(1), whole[name], EXACT), a)
            return Piece(sql=f"{name}({a.sql})", of=of, may_fail=a.may_fail)
        if name == "sign":
            of = strict(lambda x: Decimal((x > 0) - (x < 0)), a)
            return Piece(sql=f"sign({a.sql})", of=of, may_fail=a.may_fail)
        sql = f"abs({a.sql})" if name == "abs" else f"(- {a.sql})"
        of = strict(lambda x: x.copy_abs() if name == "abs" else x.copy_negate(), a)
        return Piece(sql=sql, of=of, scale=a.scale, may_fail=a.may_fail)

    def _of_text(self, depth: int) -> Piece:
        a, b = self.text(depth), self.text(depth)
        may_fail = a.may_fail or b.may_fail
        makes: list[tuple[str, Callable[[Row], Any], int]] = [
            (f"length({a.sql})", strict(lambda x: Decimal(len(x)), a), 0),
            (f"strpos({a.sql}, {b.sql})", strict(lambda x, y: Decimal(x.find(y) + 1), a, b), 0),
            (f"position({b.sql} IN {a.sql})", strict(lambda x, y: Decimal(x.find(y) + 1), a, b), 0),
            (f"levenshtein({a.sql}, {b.sql})", strict(lambda x, y: Decimal(edits(x, y)), a, b), 0),
            (
                f"similarity({a.sql}, {b.sql})",
                strict(lambda x, y: Decimal(similarity(x, y, "edit")) / 10_000, a, b),
                4,
            ),
        ]
        sql, of, scale = self.chance.choice(makes)
        return Piece(sql=sql, of=of, scale=scale, may_fail=may_fail)

    def _of_dates(self, depth: int) -> Piece:
        a, b = self.date(depth), self.date(depth)
        months = lambda x: x.year * 12 + x.month  # noqa: E731
        makes = [
            (f"({a.sql} - {b.sql})", lambda x, y: (x - y).days),
            (f"date_diff('day', {a.sql}, {b.sql})", lambda x, y: (y - x).days),
            (f"date_diff('month', {a.sql}, {b.sql})", lambda x, y: months(y) - months(x)),
            (f"date_diff('year', {a.sql}, {b.sql})", lambda x, y: y.year - x.year),
            (f"(year({a.sql}) + month({b.sql}))", lambda x, y: x.year + y.month),
            (
                f"(extract(day FROM {a.sql}) + quarter({b.sql}))",
                lambda x, y: x.day + (y.month + 2) // 3,
            ),
            (
                f"(extract(isodow FROM {a.sql}) - extract(doy FROM {b.sql}))",
                lambda x, y: x.isoweekday() - y.timetuple().tm_yday,
            ),
            (
                f"(extract(week FROM {a.sql}) * day({b.sql}))",
                lambda x, y: x.isocalendar().week * y.day,
            ),
        ]
        sql, function = self.chance.choice(makes)
        of = strict(lambda x, y: Decimal(function(x, y)), a, b)
        return Piece(sql=sql, of=of, may_fail=a.may_fail or b.may_fail)

    def _cast_number(self, depth: int) -> Piece:
        """Of texts and doubles."""
        safe = self.chance.random() < 0.5
        word = "TRY_CAST" if safe else "CAST"
        digits, scale, name = self.chance.choice(
            [(10, 2, "DECIMAL(12, 2)"), (5, 0, "DECIMAL(5)"), (0, 0, "INTEGER")],
        )
        if self.chance.random() < 0.5:
            a = Piece(sql="n", of=lambda row: row["n"]) if depth < 2 else self.text(depth)
            read = lambda x: number_of_text(x, digits or 38, scale)  # noqa: E731
        else:
            a = self.double(depth)
            read = lambda x: self._of_double(x, digits or 38, scale)  # noqa: E731

        def number(x: Any) -> Any:
            value = read(x)
            if value is not None and not digits and not -(2**31) <= value < 2**31:
                value = None
            return value if safe else failing(value)

        return Piece(
            sql=f"{word}({a.sql} AS {name})",
            of=strict(number, a),
            scale=scale,
            may_fail=a.may_fail or not safe,
        )

    def _of_double(self, number: float, digits: int, scale: int) -> Decimal | None:
        if not math.isfinite(number):
            return None
        value = rounded(Decimal(repr(number)), scale)
        return value if abs(value) < Decimal(10) ** digits else None

    def _narrowed(self, depth: int) -> Piece:
        """A number as another one, rounded; what does not fit ends the run."""
        a, safe = self.number(depth), self.chance.random() < 0.7
        digits, scale = self.chance.choice([(10, 2), (6, 0), (18, 3), (20, 8)])
        word = "TRY_CAST" if safe else "CAST"

        def number(x: Decimal) -> Decimal | None:
            value: Decimal | None = rounded(x, scale)
            if value is not None and abs(value) >= Decimal(10) ** digits:
                value = None
            return value if safe else failing(value)

        sql = f"{word}({a.sql} AS DECIMAL({digits + scale}, {scale}))"
        return Piece(sql=sql, of=strict(number, a), scale=scale, may_fail=a.may_fail or not safe)

    def _choice_of_numbers(self, depth: int) -> Piece:
        a, b = (self.infallible(self.number, depth) for _ in range(2))
        return self._chosen(a, b, depth)

    def _chosen(self, a: Piece, b: Piece, depth: int) -> Piece:
        condition = self.infallible(self.boolean, depth)
        scale = max(a.scale, b.scale)

        def case(row: Row) -> Any:
            return a.of(row) if condition.of(row) else b.of(row)

        def extreme(row: Row, choose: Any) -> Any:
            values = [value for value in (a.of(row), b.of(row)) if value is not None]
            return choose(values, key=ordered) if values else None

        def coalesced(row: Row) -> Any:
            value = a.of(row)
            return b.of(row) if value is None else value

        def nullif(row: Row) -> Any:
            x, y = a.of(row), b.of(row)
            return None if x is not None and y is not None and ordered(x) == ordered(y) else x

        ways = [
            (f"CASE WHEN {condition.sql} THEN {a.sql} ELSE {b.sql} END", case, scale),
            (f"coalesce({a.sql}, {b.sql})", coalesced, scale),
            (f"greatest({a.sql}, {b.sql})", lambda row: extreme(row, max), scale),
            (f"least({a.sql}, {b.sql})", lambda row: extreme(row, min), scale),
            (f"nullif({a.sql}, {b.sql})", nullif, a.scale),
        ]
        sql, of, scale = self.chance.choice(ways)
        return Piece(sql=sql, of=of, scale=scale)

    # texts

    def text(self, depth: int) -> Piece:
        if depth <= 0:
            name = self.chance.choice(["s", "t", "n", "dt", ""])
            if not name:
                text = self.chance.choice(["", "a", "x-1", "é", "50%", "it's", "ß"])
                quoted = text.replace("'", "''")
                return Piece(sql=f"'{quoted}'", of=lambda _: text)
            return Piece(sql=name, of=lambda row: row[name])
        makes = [self._text_function, self._text_function, self._as_text, self._choice_of_texts]
        return self.chance.choice(makes)(depth - 1)

    def _text_function(self, depth: int) -> Piece:
        a, b = self.text(depth), self.text(depth)
        count, start = self.chance.randint(0, 4), self.chance.randint(1, 4)
        end = lambda x: x[len(x) - count :] if count < len(x) else x  # noqa: E731
        spread = lambda x, y: x + y  # noqa: E731
        ways: list[tuple[str, Callable[..., Any]]] = [
            (f"lower({a.sql})", lower),
            (f"upper({a.sql})", upper),
            (f"trim({a.sql})", lambda x: x.strip(" ")),
            (f"ltrim({a.sql})", lambda x: x.lstrip(" ")),
            (f"trim(TRAILING ' ' FROM {a.sql})", lambda x: x.rstrip(" ")),
            (f"substr({a.sql}, {start}, {count})", lambda x: x[start - 1 : start - 1 + count]),
            (f"substring({a.sql} FROM {start})", lambda x: x[start - 1 :]),
            (f"left({a.sql}, {count})", lambda x: x[:count]),
            (f"right({a.sql}, {count})", end),
            (f"lpad({a.sql}, {count}, 'xy')", lambda x: self._padded(x, count, left=True)),
            (f"rpad({a.sql}, {count}, 'xy')", lambda x: self._padded(x, count, left=False)),
            (f"split_part({a.sql}, '-', {start})", lambda x: [*x.split("-"), *[""] * 9][start - 1]),
            (f"regexp_replace({a.sql}, '[^a-z]+', '#', 'g')", lambda x: re.sub("[^a-z]+", "#", x)),
            (f"regexp_replace({a.sql}, '(x)-', '\\1', 'g')", lambda x: re.sub("(x)-", r"\1", x)),
        ]
        if self.chance.random() < 0.3:
            may_fail = a.may_fail or b.may_fail
            sql, of = self.chance.choice(
                [
                    (f"({a.sql} || {b.sql})", strict(spread, a, b)),
                    (
                        f"concat({a.sql}, {b.sql})",
                        lambda row: (a.of(row) or "") + (b.of(row) or ""),
                    ),
                    (
                        f"replace({a.sql}, {b.sql}, '#')",
                        strict(lambda x, y: x.replace(y, "#") if y else x, a, b),
                    ),
                ]
            )
            return Piece(sql=sql, of=of, may_fail=may_fail)
        sql, function = self.chance.choice(ways)
        return Piece(sql=sql, of=strict(function, a), may_fail=a.may_fail)

    def _padded(self, text: str, length: int, *, left: bool) -> str:
        fill = ("xy" * length)[: max(0, length - len(text))]
        return fill + text[:length] if left else text[:length] + fill

    def _as_text(self, depth: int) -> Piece:
        kind = self.chance.choice(["number", "boolean", "date", "double", "ts", "tz"])
        if kind in ("ts", "tz"):
            of = strict(
                lambda x: stamp(x) + ("Z" if kind == "tz" else ""),
                Piece(sql="", of=lambda r: r[kind]),
            )
            return Piece(sql=f"CAST({kind} AS VARCHAR)", of=of)
        a = {
            "number": self.number,
            "boolean": self.boolean,
            "date": self.date,
            "double": self.double,
        }[kind](depth)
        writes: dict[str, Callable[[Any], str]] = {
            "number": lambda x: (
                f"{rounded(x, a.scale) + 0:f}" if x else f"{Decimal(0).scaleb(-a.scale):f}"
            ),
            "boolean": lambda x: "true" if x else "false",
            "date": lambda x: x.isoformat(),
            "double": double_text,
        }
        write = exact(writes["number"]) if kind == "number" else writes[kind]
        return Piece(sql=f"CAST({a.sql} AS VARCHAR)", of=strict(write, a), may_fail=a.may_fail)

    def _choice_of_texts(self, depth: int) -> Piece:
        a, b = (self.infallible(self.text, depth) for _ in range(2))
        return self._chosen(a, b, depth)

    # truth

    def boolean(self, depth: int) -> Piece:
        if depth <= 0:
            name = self.chance.choice("bc")
            return Piece(sql=name, of=lambda row: row[name])
        makes = [
            self._compared,
            self._compared,
            self._joined,
            self._asked_of_text,
            self._null,
            self._in,
        ]
        return self.chance.choice(makes)(depth - 1)

    def _pair(self, depth: int) -> tuple[Piece, Piece]:
        make = self.chance.choice(
            [self.number, self.number, self.text, self.date, self.double, self.ticks, self.boolean],
        )
        return make(depth), make(depth)

    def _compared(self, depth: int) -> Piece:
        a, b = self._pair(depth)
        operator = self.chance.choice(["=", "<>", "<", "<=", ">", ">="])
        may_fail = a.may_fail or b.may_fail
        if self.chance.random() < 0.2:
            negated = self.chance.choice(["", "NOT "])

            def distinct(row: Row) -> bool:
                x, y = a.of(row), b.of(row)
                same = x is y if x is None or y is None else ordered(x) == ordered(y)
                return same if negated else not same

            return Piece(
                sql=f"({a.sql} IS {negated}DISTINCT FROM {b.sql})",
                of=distinct,
                may_fail=may_fail,
            )
        of = strict(lambda x, y: compared(operator, x, y), a, b)
        return Piece(sql=f"({a.sql} {operator} {b.sql})", of=of, may_fail=may_fail)

    def _joined(self, depth: int) -> Piece:
        a, b = (self.infallible(self.boolean, depth) for _ in range(2))

        def both(row: Row) -> bool | None:
            values = (a.of(row), b.of(row))
            return False if False in values else None if None in values else True

        def either(row: Row) -> bool | None:
            values = (a.of(row), b.of(row))
            return True if True in values else None if None in values else False

        def negated(row: Row) -> bool | None:
            value = a.of(row)
            return None if value is None else not value

        ways: list[tuple[str, Callable[[Row], Any]]] = [
            (f"({a.sql} AND {b.sql})", both),
            (f"({a.sql} OR {b.sql})", either),
            (f"(NOT {a.sql})", negated),
        ]
        sql, of = self.chance.choice(ways)
        return Piece(sql=sql, of=of)

    def _asked_of_text(self, depth: int) -> Piece:
        a, b = self.text(depth), self.text(depth)
        pattern = self.chance.choice(["a%", "%a", "_", "%\\%", "%!%%", "__%", "a\\b", "", "%ß%"])
        signs = {"%": ".*", "_": "."}
        plain = "".join(signs.get(sign) or re.escape(sign) for sign in pattern)
        escaped = re.sub(r"!(.)|(%)|(_)|(.)", self._of_like, pattern)
        ways: list[tuple[str, Callable[..., Any], tuple[Piece, ...]]] = [
            (
                f"({a.sql} LIKE '{pattern}')",
                lambda x: bool(re.fullmatch(plain, x, re.DOTALL)),
                (a,),
            ),
            (
                f"({a.sql} NOT LIKE '{pattern}' ESCAPE '!')",
                lambda x: not re.fullmatch(escaped, x, re.DOTALL),
                (a,),
            ),
            (f"contains({a.sql}, {b.sql})", lambda x, y: y in x, (a, b)),
            (f"starts_with({a.sql}, {b.sql})", lambda x, y: x.startswith(y), (a, b)),
            (f"ends_with({a.sql}, {b.sql})", lambda x, y: x.endswith(y), (a, b)),
            (
                rf"regexp_matches({a.sql}, '^\w+$')",
                lambda x: bool(re.fullmatch(r"\w+", x, re.ASCII)),
                (a,),
            ),
        ]
        sql, function, pieces = self.chance.choice(ways)
        return Piece(
            sql=sql, of=strict(function, *pieces), may_fail=any(p.may_fail for p in pieces)
        )

    def _of_like(self, sign: re.Match[str]) -> str:
        return re.escape(sign[1] or sign[4]) if sign[1] or sign[4] else ".*" if sign[2] else "."

    def _null(self, depth: int) -> Piece:
        a, negated = self.infallible(self.any_sort, depth), self.chance.choice(["", "NOT "])
        of = lambda row: (a.of(row) is None) is (not negated)  # noqa: E731
        return Piece(sql=f"({a.sql} IS {negated}NULL)", of=of)

    def _in(self, depth: int) -> Piece:
        make = self.chance.choice([self.number, self.text, self.date])
        a, b, c = (self.infallible(make, depth) for _ in range(3))

        def among(row: Row) -> bool | None:
            value, others = a.of(row), [b.of(row), c.of(row)]
            if value is None:
                return None
            return True if value in others else None if None in others else False

        def between(row: Row) -> bool | None:
            value, low, high = a.of(row), b.of(row), c.of(row)
            parts = [
                None if value is None or low is None else compared(">=", value, low),
                None if value is None or high is None else compared("<=", value, high),
            ]
            return False if False in parts else None if None in parts else True

        if self.chance.random() < 0.5:
            return Piece(sql=f"({a.sql} BETWEEN {b.sql} AND {c.sql})", of=between)
        return Piece(sql=f"({a.sql} IN ({b.sql}, {c.sql}))", of=among)

    # dates

    def date(self, depth: int) -> Piece:
        if depth <= 0:
            name = self.chance.choice(["day", "till", ""])
            if not name:
                return Piece(sql="DATE '2024-01-31'", of=lambda _: date(2024, 1, 31))
            return Piece(sql=name, of=lambda row: row[name])
        return self.chance.choice([self._moved, self._cut, self._date_cast, self._choice_of_dates])(
            depth - 1
        )

    def _moved(self, depth: int) -> Piece:
        a, operator = self.date(depth), self.chance.choice("+-")
        if self.chance.random() < 0.5:
            days = self.chance.choice([0, 1, 30])
            sql = f"({a.sql} {operator} {self.chance.choice([str(days), f'INTERVAL {days} DAY'])})"
            number = Piece(sql="", of=lambda _: Decimal(days))
        else:
            number = Piece(sql="j", of=lambda row: row["j"])
            sql = f"({a.sql} {operator} j)"

        def of(row: Row) -> Any:
            at, days = a.of(row), number.of(row)
            if days is not None and abs(days) > 4_000_000:
                raise Failed
            return (
                None
                if at is None or days is None
                else moved(at, days if operator == "+" else -days)
            )

        return Piece(sql=sql, of=of, may_fail=True)

    def _cut(self, depth: int) -> Piece:
        a, unit = self.date(depth), self.chance.choice(["day", "week", "month", "year"])
        cut: dict[str, Callable[[date], date]] = {
            "day": lambda x: x,
            "week": lambda x: x - timedelta(days=x.weekday()),
            "month": lambda x: x.replace(day=1),
            "year": lambda x: x.replace(day=1, month=1),
        }
        return Piece(
            sql=f"date_trunc('{unit}', {a.sql})",
            of=strict(cut[unit], a),
            may_fail=a.may_fail,
        )

    def _date_cast(self, depth: int) -> Piece:
        if self.chance.random() < 0.4:
            a = self.ticks(depth)
            return Piece(sql=f"CAST({a.sql} AS DATE)", of=strict(day_of, a), may_fail=a.may_fail)
        safe = self.chance.random() < 0.6
        of = strict(
            lambda x: date_of_text(x) if safe else failing(date_of_text(x)),
            Piece(sql="", of=lambda row: row["dt"]),
        )
        return Piece(sql=f"{'TRY_' if safe else ''}CAST(dt AS DATE)", of=of, may_fail=not safe)

    def _choice_of_dates(self, depth: int) -> Piece:
        a, b = (self.infallible(self.date, depth) for _ in range(2))
        return self._chosen(a, b, depth)

    # doubles and timestamps

    def double(self, depth: int) -> Piece:
        if depth <= 0:
            name = self.chance.choice("fg")
            return Piece(
                sql=name,
                of=lambda row: None if row[name] is None else one_zero(row[name]),
            )
        return self.chance.choice([self._double_sum, self._double_cast, self._double_choice])(
            depth - 1
        )

    def _double_sum(self, depth: int) -> Piece:
        a, b, operator = self.double(depth), self.double(depth), self.chance.choice("+-*/")

        def of(x: float, y: float) -> float:
            if operator == "/" and y == 0:
                raise Failed
            operations = {
                "+": lambda: x + y,
                "-": lambda: x - y,
                "*": lambda: x * y,
                "/": lambda: x / y,
            }
            return one_zero(operations[operator]())

        may_fail = a.may_fail or b.may_fail or operator == "/"
        return Piece(sql=f"({a.sql} {operator} {b.sql})", of=strict(of, a, b), may_fail=may_fail)

    def _double_cast(self, depth: int) -> Piece:
        a = self.number(depth)
        return Piece(
            sql=f"CAST({a.sql} AS DOUBLE)",
            of=strict(lambda x: one_zero(float(x)), a),
            may_fail=a.may_fail,
        )

    def _double_choice(self, depth: int) -> Piece:
        a, b = (self.infallible(self.double, depth) for _ in range(2))
        return self._chosen(a, b, depth)

    def ticks(self, depth: int) -> Piece:
        name = self.chance.choice(["ts", "ts2"])
        column = Piece(sql=name, of=lambda row: row[name])
        if depth <= 0 or self.chance.random() < 0.5:
            return column
        if self.chance.random() < 0.5:
            a = self.infallible(self.date, depth - 1)
            of = strict(lambda x: (x - EPOCH).days * DAY_TICKS, a)
            return Piece(sql=f"CAST({a.sql} AS TIMESTAMP)", of=of)
        return Piece(
            sql=f"({name} + INTERVAL 90 MINUTE)",
            of=strict(lambda x: x + 5_400 * 10**6, column),
            may_fail=False,
        )
