"""Generated books: two sides, a recipe and decisions, all from one seed.

A book begins with deals: what was agreed, once. Each side writes its own records of a deal, in its
own types: exactly, a little off, in parts, twice, or not at all. Columns have hostile names (ours,
reserved words, quotes, letters of other scripts, twins that differ only in case).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.reconcile.oracle.values import Side, text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAMES = [
    *(
        "_id",
        "id",
        "ID",
        "Id",
        "ref",
        "REF",
        "Ref",
        "amount",
        "AMOUNT",
        "day",
        "Day",
        "name",
        "l",
        "r",
        "g",
        "s",
        "n",
    ),
    *(
        "p0",
        "c0",
        "f0",
        "F1",
        "q0",
        "k0",
        "e0",
        "_row",
        "row",
        "side",
        "key",
        "count",
        "score",
        "ambiguous",
        "rule",
    ),
    *(
        "reason",
        "source_reason",
        "nearest_id",
        "nearest_difference",
        "nearest_days",
        "difference",
        "days",
        "match_id",
    ),
    *(
        "left_id",
        "right_id",
        "pattern",
        "diff_amount",
        "left_src",
        "right_src",
        "left_rows",
        "breaks_l",
        "links_0",
    ),
    *(
        "file_row_number",
        "file_index",
        "filename",
        "rowid",
        "select",
        "from",
        "order",
        "group",
        "table",
        "at",
        "NULL",
    ),
    *(
        'a"b',
        "it's",
        "a b",
        " ",
        "a.b",
        "a,b",
        "%s",
        "$1",
        "?",
        "--",
        "/*",
        ";",
        "\\",
        "{}",
        "été",
        "ÉTÉ",
        "ß",
        "名前",
    ),
    *("İ", "x" * 200, "0", "-1", "true"),
]
ZONES = ["UTC", "UTC", "Europe/Vienna", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"]
PEOPLE = [
    "acme",
    "acne",
    "Acme Corp",
    "corp acme",
    "ACME  CORP",
    "A1 ltd",
    "é",
    "ßtrasse",
    "strasse",
    "",
    "x",
]
SHAPES = [
    "INV-{0}",
    "inv {0}",
    " INV-{0}",
    "INV{0}\t",
    "Inv–{0}",
    "{0}",
    "ΟΔΟΣ {0}",
    "οδος {0}",
    "É{0}",
    "İ{0}",
    "i{0}",
]
MOMENTS = [
    *(datetime(2024, 1, 30, 23, 30, tzinfo=UTC) + timedelta(hours=n) for n in range(0, 60, 7)),
    datetime(2024, 2, 1, tzinfo=UTC),
    datetime(2024, 1, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2024, 3, 31, 0, 59, 59, tzinfo=UTC),
    datetime(2024, 3, 31, 1, tzinfo=UTC),
    datetime(2040, 6, 30, 22, 30, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]
CLOCKS = [time(0), time(23, 59, 59), time(1, 2), time(1, 2, 3, 400_000), time(1, 2, 3, 4)]
OFFSETS = ["Z", "z", "+00", "+01:00", "-05:00", "+0530", "-0330", "+14:00"]
OFF = [0, 0, 0, 0, 1, 2, -2, 3, -1, 100]
WRONG_AMOUNTS = ["12,50", "n/a", "1.2345678", "1e3", "--1"]
WRONG_DAYS = ["2024-02-30", "31.1.2024", "2024-01-31T25:00", "2024-01-31 12:00 UTC", "2024-01-31x"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """What a record is about: a number, cents, a moment and a person."""

    ref: int
    cents: int
    moment: datetime
    person: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How a side writes one thing of a deal: a type, and a value of it."""

    type: pa.DataType
    write: Callable[[random.Random, Deal], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """`pieces` says in how many files each side is. A book of free SQL has no rules in its
    document; `conditions` are what the SQL asks for."""

    seed: int
    document: dict[str, Any]
    left: Side
    right: Side
    match: Sequence[tuple[Any, Any]]
    unmatch: Sequence[tuple[Any, Any]]
    pieces: int
    conditions: Sequence[dict[str, Any]] = ()


def book(seed: int) -> Book:
    chance = random.Random(seed)
    free = chance.random() < 0.12
    amounts, whole = (_plain_amounts(), False) if free else _amounts(chance)
    refs = [
        *(_text_refs, _text_refs, _number_refs, _number_refs),
        *(_day_refs, _boolean_refs, _byte_refs, _clock_refs),
    ]
    kinds = _text_refs(chance) if free else chance.choice(refs)(chance)
    days = _day(chance, wrong=not free), _day(chance, wrong=not free)
    deals = _deals(chance, whole=whole)
    names: dict[str, dict[str, str]] = {}
    sides = []
    for at, name in enumerate(("left", "right")):
        things = {"ref": kinds[at], "amount": amounts[at], "day": days[at], "name": _person()}
        side, names[name] = _side(chance, name, things, deals[at], free=free)
        sides.append(side)
    left, right = sides
    match, unmatch = _decisions(chance, [_keys_of(side) for side in sides])
    recipe = _Recipe(chance, names, left, right)
    conditions = recipe.free_conditions() if free else []
    return Book(
        seed=seed,
        document=recipe.free_document(conditions) if free else recipe.document(),
        left=left,
        right=right,
        match=match,
        unmatch=unmatch,
        pieces=chance.choice([1, 1, 2, 3]),
        conditions=conditions,
    )


# deals


def _deals(chance: random.Random, *, whole: bool) -> tuple[list[Deal], list[Deal]]:
    """What each side has records of."""
    left: list[Deal] = []
    right: list[Deal] = []
    refs = chance.choice([2, 4, 8, 20])
    unit = 100 if whole else 1
    for _ in range(chance.choice([0, 1, 3, 8, 12, 16])):
        cents = chance.choice([0, 1, 5, 100, 100, 101, 102, 250, 9_999, 10_000, -100, -3]) * unit
        deal = Deal(
            ref=chance.randrange(refs),
            cents=cents,
            moment=chance.choice(MOMENTS),
            person=chance.choice(PEOPLE),
        )
        shape = chance.randrange(8)
        left += (
            _parts(chance, deal, unit)
            if shape in (0, 1)
            else [deal]
            if shape != 2
            else [deal, deal]
        )
        near = _near(chance, deal, unit)
        right += _parts(chance, near, unit) if shape in (0, 3) else [] if shape == 4 else [near]
        right += [_near(chance, deal, unit)] if shape == 5 else []
    return left, right


def _near(chance: random.Random, deal: Deal, unit: int) -> Deal:
    moment = chance.choice(
        [deal.moment, deal.moment, deal.moment + timedelta(hours=1), chance.choice(MOMENTS)]
    )
    person = chance.choice([deal.person, deal.person, chance.choice(PEOPLE)])
    return replace(deal, cents=deal.cents + chance.choice(OFF) * unit, moment=moment, person=person)


def _parts(chance: random.Random, deal: Deal, unit: int) -> list[Deal]:
    first = chance.choice([1, 50, -1]) * unit
    parts = [first, deal.cents - first]
    if chance.random() < 0.3:
        parts = [first, first, deal.cents - 2 * first]
    return [replace(deal, cents=cents) for cents in parts]


# sides


def _side(
    chance: random.Random,
    name: str,
    things: dict[str, Written],
    deals: Sequence[Deal],
    *,
    free: bool,
) -> tuple[Side, dict[str, str]]:
    """Columns of the things, of a key, of a number, and some that nobody asks for, in any order;
    and their names. For free SQL keys are unique, and no two names are equal but for case."""
    unique = free or chance.random() < 0.6
    key = {"key": _key(chance)} | ({"key2": _key(chance)} if chance.random() < 0.25 else {})
    more = {f"more {number}": _any(chance) for number in range(chance.randrange(4))}
    columns = {**key, **things, **more}
    # The guard takes no quote or backslash in a name of free SQL.
    spared = {name.casefold(): name for name in NAMES if not set(name) & set("\"'\\.")}
    allowed = list(spared.values()) if free else NAMES
    names = dict(zip(["uid", *columns], chance.sample(allowed, len(columns) + 1), strict=True))
    if chance.random() < 0.5 and not free:
        _add_twin(names, columns)
    rows = []
    for number, deal in enumerate(deals):
        row = {names["uid"]: number}
        for thing, written in columns.items():
            row[names[thing]] = None if chance.random() < 0.05 else written.write(chance, deal)
            if free and thing == "key2":
                row[names[thing]] = written.write(chance, deal)
        if unique:
            row[names["key"]] = _unique(columns["key"].type, number)
        rows.append(row)
    chance.shuffle(rows)
    order = [*columns, "uid"]
    chance.shuffle(order)
    types = {thing: written.type for thing, written in columns.items()} | {"uid": pa.int64()}
    schema = pa.schema([pa.field(names[thing], types[thing]) for thing in order])
    return Side(
        name=name, schema=schema, rows=rows, key=[names[thing] for thing in key], uid=names["uid"]
    ), names


def _add_twin(names: dict[str, str], columns: dict[str, Written]) -> None:
    """A column whose name differs from another's only in case, with values of its own."""
    for thing, name in list(names.items()):
        twin = name.swapcase()
        if thing in columns and twin not in names.values() and len(twin) == len(name):
            names[f"twin of {thing}"] = twin
            columns[f"twin of {thing}"] = columns[thing]
            return


def _keys_of(side: Side) -> list[Any]:
    keys = [tuple(row[name] for name in side.key) for row in side.rows]
    return list(dict.fromkeys(key for key in keys if None not in key))


def _decisions(chance: random.Random, keys: list[list[Any]]) -> tuple[list[Any], list[Any]]:
    """Each key once, as the service lets people decide."""
    if chance.random() < 0.75 or not all(keys):
        return [], []
    pairs = list(zip(*(chance.sample(side, min(len(side), 4)) for side in keys), strict=False))
    cut = chance.randrange(len(pairs) + 1)
    return pairs[:cut], pairs[cut:]


# things


def _key(chance: random.Random) -> Written:
    return chance.choice(
        [
            Written(
                type=pa.string(), write=lambda c, _: c.choice(["k1", "k2", "K1", "k10", "é", ""])
            ),
            Written(type=pa.int64(), write=lambda c, _: c.randrange(-3, 9)),
            Written(
                type=pa.date32(),
                write=lambda c, _: date(2024, 1, 1) + timedelta(days=c.randrange(9)),
            ),
            Written(
                type=pa.decimal128(30, 3),
                write=lambda c, _: Decimal(c.randrange(-3, 9)).quantize(Decimal("0.001")),
            ),
            Written(type=pa.timestamp("us", "Europe/Vienna"), write=lambda c, _: c.choice(MOMENTS)),
            Written(
                type=pa.timestamp("ns"), write=lambda c, _: c.choice(MOMENTS).replace(tzinfo=None)
            ),
            Written(type=pa.float64(), write=lambda c, _: c.choice([-1.5, -0.0, 0.1, 1e16, 1e-7])),
            Written(type=pa.binary(), write=lambda c, _: bytes([c.randrange(250, 256)])),
            Written(type=pa.time64("us"), write=lambda c, _: c.choice(CLOCKS)),
        ]
    )


def _unique(kind: pa.DataType, number: int) -> Any:
    if pa.types.is_string(kind):
        return f"k{number}"
    if pa.types.is_date(kind):
        return date(2024, 1, 1) + timedelta(days=number)
    if pa.types.is_timestamp(kind):
        moment = MOMENTS[0] + timedelta(minutes=number)
        return moment if kind.tz else moment.replace(tzinfo=None)
    if pa.types.is_time(kind):
        return time(0, number, 0, number * 100_000 % 1_000_000)
    if pa.types.is_binary(kind):
        return bytes([255 - number])
    if pa.types.is_floating(kind):
        return number / 8
    return number if pa.types.is_integer(kind) else Decimal(number).quantize(Decimal("0.001"))


def _person() -> Written:
    return Written(type=pa.string(), write=lambda _, deal: deal.person)


def _any(chance: random.Random) -> Written:
    """A column of any type, which evidence has to carry as it is."""
    kind, *values = chance.choice(
        [
            (pa.string(), "", "x\n", "é"),
            (pa.bool_(), True, False),
            (pa.binary(), b"", b"\x00\xff"),
            (pa.float32(), 1.5, -0.0),
            (pa.uint64(), 0, 2**64 - 1),
            (pa.int8(), -128, 127),
            (pa.time64("us"), time(1, 2, 3, 4), time(0)),
            (pa.duration("us"), timedelta(days=1, microseconds=1), timedelta(-1)),
            (pa.list_(pa.int64()), [], [1, None]),
            (
                pa.list_(pa.decimal256(50, 2)),
                [],
                [Decimal("12345678901234567890123456789012345678901.25")],
            ),
            (pa.struct([("a", pa.string()), ("A", pa.int32())]), {"a": "x", "A": 1}),
            (pa.null(), None),
            (pa.decimal128(38, 38), Decimal("0.1"), Decimal(0)),
            (pa.timestamp("ms", "America/New_York"), *MOMENTS[:2]),
        ]
    )
    return Written(type=kind, write=lambda c, _: c.choice(values))


def _text_refs(chance: random.Random) -> tuple[Written, Written]:
    few = chance.sample(SHAPES, chance.choice([1, 1, 2, 4]))
    refs = Written(type=pa.string(), write=lambda c, deal: c.choice(few).format(deal.ref))
    return refs, refs


def _number_refs(chance: random.Random) -> tuple[Written, Written]:
    """Numbers of up to 38 digits, in any type that has them."""
    small, large = Decimal(chance.choice([0, -4])), Decimal(10) ** chance.choice([20, 29, 35])

    def number(base: Decimal, scale: int) -> Callable[[random.Random, Deal], Decimal]:
        def write(_: random.Random, deal: Deal) -> Decimal:
            with localcontext(prec=80):
                return (base + deal.ref).quantize(Decimal(1).scaleb(-scale))

        return write

    def text(c: random.Random, deal: Deal) -> str:
        sign = "-0" if deal.ref + small == 0 and c.random() < 0.2 else f"{deal.ref + small}"
        return f"{c.choice(['', ' ', chr(9)])}{sign}{c.choice(['', '.0', '.000000'])}"

    wide = [
        Written(type=pa.decimal128(38, 0), write=number(large, 0)),
        Written(type=pa.decimal128(38, 2), write=number(large, 2)),
        Written(type=pa.decimal256(60, 1), write=number(large, 1)),
    ]
    narrow = [
        Written(type=pa.int64(), write=lambda _, deal: int(deal.ref + small)),
        Written(type=pa.int16(), write=lambda _, deal: int(deal.ref + small)),
        Written(type=pa.decimal128(38, 12), write=number(small, 12)),
        Written(type=pa.decimal128(4, 1), write=number(small, 1)),
        Written(type=pa.string(), write=text),
        Written(type=pa.float64(), write=lambda _, deal: float(deal.ref + small) or -0.0),
    ]
    kinds = wide if chance.random() < 0.3 else narrow
    left, right = chance.choice(kinds), chance.choice(kinds)
    return (
        (left, narrow[0])
        if pa.types.is_string(left.type) and pa.types.is_string(right.type)
        else (left, right)
    )


def _day_refs(chance: random.Random) -> tuple[Written, Written]:
    left, right = _day(chance), _day(chance)
    return (
        (left, _dates())
        if pa.types.is_string(left.type) and pa.types.is_string(right.type)
        else (left, right)
    )


def _byte_refs(chance: random.Random) -> tuple[Written, Written]:
    def data(_: random.Random, deal: Deal) -> bytes:
        return bytes([0, 200 + deal.ref])

    kinds = [
        Written(type=pa.binary(), write=data),
        Written(type=pa.binary(2), write=data),
        Written(type=pa.string(), write=lambda c, deal: data(c, deal).hex()),
    ]
    return kinds[chance.randrange(2)], chance.choice(kinds)


def _clock_refs(chance: random.Random) -> tuple[Written, Written]:
    def clock(_: random.Random, deal: Deal) -> time:
        return CLOCKS[deal.ref % len(CLOCKS)]

    kinds = [
        Written(type=pa.time64("us"), write=clock),
        Written(type=pa.time64("ns"), write=clock),
        Written(type=pa.string(), write=lambda c, deal: text(clock(c, deal))),
    ]
    return kinds[chance.randrange(2)], chance.choice(kinds)


def _boolean_refs(_: random.Random) -> tuple[Written, Written]:
    refs = Written(type=pa.bool_(), write=lambda _, deal: deal.ref % 2 == 0)
    return refs, refs


def _amounts(chance: random.Random) -> tuple[tuple[Written, Written], bool]:
    """Both sides' amounts, and whether they are whole: one of the types may have no decimals.
    Large ones are the same small amounts on top of a number that both types hold, or one of them
    does not."""
    kinds = [_amount_type(chance) for _ in range(2)]
    kinds = [kinds[0]] * 2 if chance.random() < 0.4 else kinds
    decimals = [k for k in kinds if k is not None and pa.types.is_decimal(k)]
    room = min((k.precision - k.scale for k in decimals), default=0) if len(decimals) == 2 else 0
    base = chance.choice([0, 10 ** (room - 1), 10**room - 20_000]) if room > 4 else 0
    if all(k is not None and (pa.types.is_floating(k) or k in decimals) for k in kinds):
        base = base or chance.choice([0, 10**10, 10**13])
    whole = any(
        k is not None and (pa.types.is_integer(k) or (pa.types.is_decimal(k) and k.scale < 2))
        for k in kinds
    )
    left, right = (_amount(kind, base) for kind in kinds)
    return (left, right), whole


def _plain_amounts() -> tuple[Written, Written]:
    return _amount(pa.decimal128(18, 2), 0), _amount(pa.decimal128(20, 6), 0)


def _amount_type(chance: random.Random) -> pa.DataType | None:
    """None is text."""
    if (shape := chance.random()) < 0.1:
        return pa.int64()
    if shape < 0.22:
        return pa.float64()
    if shape < 0.38:
        return None
    if shape < 0.44:
        return pa.decimal256(40, 2)
    scale = chance.choice([0, 2, 2, 2, 2, 3, 6, 9, 12, 20])
    return pa.decimal128(chance.choice([28, 28, min(38, scale + chance.randrange(4, 29))]), scale)


def _amount(kind: pa.DataType | None, base: int) -> Written:
    def decimal(_: random.Random, deal: Deal) -> Decimal:
        with localcontext(prec=80):
            value = (base + Decimal(deal.cents) / 100).quantize(Decimal(1).scaleb(-kind.scale))
            return value if abs(value) < 10 ** (kind.precision - kind.scale) else value * 0

    def text(chance: random.Random, deal: Deal) -> str:
        value = Decimal(deal.cents) / 100
        if chance.random() < 0.002:
            return chance.choice(WRONG_AMOUNTS)
        zeros = ["-0.00", "0"] if not value else []
        return chance.choice([f"{value}", f" {value:.2f}", f"{value:.6f}\t", *zeros])

    if kind is None:
        return Written(type=pa.string(), write=text)
    if pa.types.is_integer(kind):
        return Written(type=kind, write=lambda _, deal: deal.cents // 100)
    if pa.types.is_floating(kind):
        return Written(
            type=kind,
            write=lambda c, deal: (
                math.nan if c.random() < 0.002 else float(base + Decimal(deal.cents) / 100) or -0.0
            ),
        )
    return Written(type=kind, write=decimal)


def _day(chance: random.Random, *, wrong: bool = True) -> Written:
    unit = chance.choice(["ms", "us", "ns"])
    match chance.randrange(4):
        case 0:
            return _dates()
        case 1:
            return _moments(pa.timestamp(unit, chance.choice(["UTC", "Europe/Vienna", "+05:30"])))
        case 2:
            return _moments(pa.timestamp(unit))
    return Written(type=pa.string(), write=lambda c, deal: _moment_text(c, deal, wrong=wrong))


def _dates() -> Written:
    return Written(type=pa.date32(), write=lambda _, deal: deal.moment.date())


def _moments(kind: pa.DataType) -> Written:
    def write(_: random.Random, deal: Deal) -> datetime:
        coarse = deal.moment.replace(microsecond=deal.moment.microsecond // 1000 * 1000)
        moment = coarse if kind.unit == "ms" else deal.moment
        return moment if kind.tz else moment.replace(tzinfo=None)

    return Written(type=kind, write=write)


def _moment_text(chance: random.Random, deal: Deal, *, wrong: bool) -> str:
    if chance.random() < 0.002 and wrong:
        return chance.choice(WRONG_DAYS)
    clock = chance.choice(["", "T%H:%M", " %H:%M:%S", "T%H:%M:%S.%f"])
    offset = chance.choice(["", chance.choice(OFFSETS)]) if clock else ""
    lead, time = chance.choice(["", " "]), deal.moment.strftime(clock) if clock else ""
    return f"{lead}{deal.moment:%Y-%m-%d}{time}{offset}"


# recipes


class _Recipe:
    def __init__(
        self,
        chance: random.Random,
        names: dict[str, dict[str, str]],
        left: Side,
        right: Side,
    ) -> None:
        self.chance = chance
        self.names = names
        self.left = left
        self.right = right

    def document(self) -> dict[str, Any]:
        chance = self.chance
        document: dict[str, Any] = {
            "name": "book",
            "sources": {
                side.name: {"upload": "0" * 32, "primary_key": list(side.key)}
                for side in (self.left, self.right)
            },
            "rules": [self.rule(number) for number in range(chance.choice([1, 1, 2, 3]))],
            "output": self.output(),
        }
        if (zone := chance.choice(ZONES)) != "UTC" or chance.random() < 0.2:
            document["time_zone"] = zone
        if chance.random() < 0.5:
            document["compare"] = self.compare()
        return document

    def output(self) -> dict[str, Any]:
        chance = self.chance
        output: dict[str, Any] = {"wide": True}
        if chance.random() < 0.5:
            output = {"columns": {side: [self.names[side]["uid"]] for side in ("left", "right")}}
        if chance.random() < 0.3:
            output["amount"] = self.pair("amount")
        if chance.random() < 0.3:
            output["currency"] = self.pair("name")
        return output

    def compare(self) -> list[dict[str, str]]:
        things = self.chance.sample(["amount", "day", "name"], self.chance.randrange(1, 3))
        return [{**self.pair(thing), "name": f"of_{thing}"} for thing in things]

    def pair(self, thing: str) -> dict[str, str]:
        return {side: self.names[side][thing] for side in ("left", "right")}

    def rule(self, number: int) -> dict[str, Any]:
        chance = self.chance
        pattern = chance.choice(["1:1", "1:1", "1:1", "1:N", "M:1", "M:N"])
        conditions = [chance.choice(self.keys())]
        if pattern == "M:N":
            conditions += [self.month()] if chance.random() < 0.3 else []
        else:
            conditions += chance.sample(self.others(), chance.choice([0, 1, 1, 2, 3]))
        if pattern != "1:1":
            conditions.append({**self.pair("amount"), "op": "sum_within", **self.bounds()})
        if chance.random() < 0.08 and pattern != "M:N":
            conditions = conditions[1:] or conditions
        chance.shuffle(conditions)
        return {"name": f"rule's {number}", "pattern": pattern, "conditions": conditions}

    def keys(self) -> list[dict[str, Any]]:
        keys: list[dict[str, Any]] = [{**self.pair("ref"), "op": "eq"}]
        if all(
            side.kind(self.names[side.name]["ref"]) == "text" for side in (self.left, self.right)
        ):
            steps: list[list[Any]] = [
                ["trim", "case"],
                ["case", "punctuation", "spaces"],
                ["digits"],
                [{"regex": r"^\s*\w", "replace": ""}, "trim"],
                [{"regex": r"([A-Za-z]+)[ -]?(\d+)", "replace": r"\2\1"}, "case"],
            ]
            keys += [{**self.pair("ref"), "op": "normalized", "steps": its} for its in steps]
        return keys

    def month(self) -> dict[str, Any]:
        return {
            **self.pair("day"),
            "op": "normalized",
            "steps": [self.chance.choice(["month", "year"])],
        }

    def others(self) -> list[dict[str, Any]]:
        chance = self.chance
        window = chance.choice([{"days": 0}, {"days": 1}, {"before": 0, "after": 2}, {"after": 40}])
        return [
            {**self.pair("amount"), "op": "tolerance", **self.bounds()},
            {**self.pair("amount"), "op": "tolerance", **self.bounds()},
            {**self.pair("day"), "op": "date_window", **window},
            {**self.pair("day"), "op": "date_window", "days": 3},
            {**self.pair("amount"), "op": chance.choice(["gt", "gte", "lt", "lte"])},
            {**self.pair("day"), "op": chance.choice(["gte", "lte"])},
            self.month(),
            {
                **self.pair("name"),
                "op": "similar",
                "min_score": chance.choice(["0.5", "0.85", "1"]),
            },
            {**self.pair("name"), "op": "similar", "method": "token", "min_score": "0.5"},
            {
                **self.pair("name"),
                "op": chance.choice(["contains", "startswith", "endswith", "eq"]),
            },
        ]

    def bounds(self) -> dict[str, Any]:
        return self.chance.choice(
            [
                {"absolute": 0},
                {"absolute": "0.02"},
                {"absolute": "2"},
                {"absolute": "0.000001"},
                {"percent": "2"},
                {"percent": "0.5", "absolute": "0.01"},
                {"minus": "0.01", "plus": "1"},
                {"plus": "0.02"},
            ]
        )

    # free SQL

    def free_conditions(self) -> list[dict[str, Any]]:
        chance = self.chance
        conditions: list[dict[str, Any]] = [{**self.pair("ref"), "op": "eq"}]
        conditions = conditions if chance.random() < 0.8 else []
        asked = [
            {
                **self.pair("amount"),
                "op": "tolerance",
                "absolute": chance.choice(["0", "0.02", "1"]),
            },
            {**self.pair("amount"), "op": "tolerance", "percent": "2"},
            {**self.pair("day"), "op": "date_window", "days": chance.choice([0, 1, 3])},
            {**self.pair("name"), "op": "similar", "min_score": "0.75"},
        ]
        return conditions + chance.sample(asked, chance.choice([1, 2]))

    def free_document(self, conditions: Sequence[dict[str, Any]]) -> dict[str, Any]:
        document = self.document()
        del document["rules"]
        document["match_sql"] = self.sql(conditions)
        if (pattern := self.chance.choice([None, "1:1", "1:N", "M:1", "M:N"])) is not None:
            document["match_pattern"] = pattern
        return document

    def sql(self, conditions: Sequence[dict[str, Any]]) -> str:
        keys = [
            f"{side.name[0]}.{_quoted(name)} AS {_quoted(f'{side.name}_{name}')}"
            for side in (self.left, self.right)
            for name in side.key
        ]
        joined_on = " AND ".join(self.condition_sql(c) for c in conditions)
        way = self.chance.choice(
            [
                "JOIN right_src AS r ON {0}",
                ", right_src r WHERE ({0})",
                "LEFT JOIN right_src r ON {0}",
            ]
        )
        return (
            f"SELECT {', '.join(keys)}"
            f" FROM left_src AS l {way.format(joined_on)} -- the rest is breaks"
        )

    def condition_sql(self, c: dict[str, Any]) -> str:
        a, b = f"l.{_quoted(c['left'])}", f"r.{_quoted(c['right'])}"
        match c["op"]:
            case "eq":
                return f"{a} = {b}"
            case "tolerance" if "percent" in c:
                return f"pct_match({a}, {b}, {c['percent']})"
            case "tolerance":
                return f"tolerance_match({a}, {b}, {c['absolute']})"
            case "date_window":
                return f"date_match({a}, {b}, {c['days']})"
        return f"similarity({a}, {b}) >= {c['min_score']}"


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
