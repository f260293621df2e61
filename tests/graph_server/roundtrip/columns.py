"""Hostile columns of every type that a mapping can declare: values at the bounds, in shapes that
meet each of Parquet's encodings, with nulls in places where readers lose count."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

Shape: TypeAlias = Literal["any", "few", "constant", "runs", "jumps", "ascending", "fallback"]
Nulls: TypeAlias = Literal["none", "some", "runs", "all", "all_but_few"]
SHAPES: tuple[Shape, ...] = (
    "any", "few", "constant", "runs", "jumps", "ascending", "fallback",
)  # fmt: skip
NULLS: tuple[Nulls, ...] = ("none", "some", "runs", "all", "all_but_few")
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""Of the years 1 to 9999, counted from 1970."""
_SECONDS = 86_400
_LONGEST_RUN = 3_000
TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Of each unit a second."""
_TEXT = "aZé߀中🐞e\u0301\u200d\ufeff\u2028\t\n\r\x01\x1f\x7f'\"\\`$;,|%{}[]()0 "


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """A declared type, the Arrow type of its column at the source, and its values as `pa.array`
    takes them."""

    declared: str
    arrow: pa.DataType
    bounds: tuple[Any, ...]
    draw: Callable[[Random], Any]
    unique: Callable[[Random, int], Any] | None = None
    """Another value for each number, for keys and for sequences."""

    def __str__(self) -> str:
        return f"{self.declared} from {self.arrow}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    kind: Kind
    shape: Shape
    nulls: Nulls
    values: pa.Array

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}, shape {self.shape}, nulls {self.nulls})"


def column(
    random: Random, name: str, kind: Kind, rows: int, *, shape: Shape, nulls: Nulls
) -> Column:
    values = _with_nulls(random, _shaped(random, kind, rows, shape), nulls)
    if kind.declared == "UUID" and None in values:
        # Ladybug refuses to read a column of nulls beside UUIDs that are all near the greatest; the
        # guide says so.
        values = _with_least(values, kind.bounds[0])
    return Column(name=name, kind=kind, shape=shape, nulls=nulls, values=array(values, kind.arrow))


def _with_least(values: list[Any], least: Any) -> list[Any]:
    first = next((place for place, value in enumerate(values) if value is not None), None)
    return [least if place == first else value for place, value in enumerate(values)]


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


def _shaped(random: Random, kind: Kind, rows: int, shape: Shape) -> list[Any]:
    def one() -> Any:
        return random.choice(kind.bounds) if random.random() < 0.2 else kind.draw(random)

    pool = [one() for _ in range(3)]
    match shape:
        case "any":
            return [one() for _ in range(rows)]
        case "few":
            return [random.choice(pool) for _ in range(rows)]
        case "constant":
            return [pool[0]] * rows
        case "runs":
            values: list[Any] = []
            while len(values) < rows:
                values += [one()] * random.randint(1, _LONGEST_RUN)
            return values[:rows]
        case "jumps":
            usual = kind.bounds[len(kind.bounds) // 2]
            return [
                random.choice(kind.bounds) if random.random() < 0.02 else usual for _ in range(rows)
            ]
        case "ascending":
            return [_numbered(random, kind, number) for number in range(rows)]
        case "fallback":
            few = rows // 3
            return [random.choice(pool) for _ in range(few)] + [one() for _ in range(rows - few)]


def _numbered(random: Random, kind: Kind, number: int) -> Any:
    return kind.draw(random) if kind.unique is None else kind.unique(random, number)


def _with_nulls(random: Random, values: list[Any], nulls: Nulls) -> list[Any]:
    match nulls:
        case "none":
            return values
        case "some":
            return [None if random.random() < 0.2 else value for value in values]
        case "runs":
            length = random.choice((7, 64, 700, 2048, 3000))
            return [None if number // length % 2 else value for number, value in enumerate(values)]
        case "all":
            return [None] * len(values)
        case "all_but_few":
            return [value if number % 1500 == 3 else None for number, value in enumerate(values)]


# the types


def _integers(declared: str, bits: int, arrow: pa.DataType, *, above_least: int = 1) -> Kind:
    least, most = -(2 ** (bits - 1)) + above_least, 2 ** (bits - 1) - 1
    return Kind(
        declared=declared,
        arrow=arrow,
        bounds=(least, least + 1, -1, 0, 1, most - 1, most, most // 2, least // 2),
        draw=lambda random: random.randint(least, most),
        unique=lambda random, number: number * 3 % (most + 1),
    )


def _double(random: Random) -> float:
    """Any finite one, or one with two decimals."""
    value: float = struct.unpack("<d", random.randbytes(8))[0]
    return value if math.isfinite(value) else round(random.uniform(-1e6, 1e6), 2)


def _single(random: Random) -> float:
    value: float = struct.unpack("<f", random.randbytes(4))[0]
    return value if math.isfinite(value) else 0.5


def _text(random: Random) -> str:
    if random.random() < 0.0005:
        return "very long " * 30_000
    if random.random() < 0.1:
        return "long " * random.choice((1, 2, 3, 100, 820))
    return _short_text(random)


def _short_text(random: Random) -> str:
    return "".join(random.choice(_TEXT) for _ in range(random.choice((0, 1, 3, 11, 12, 13, 40))))


def _days(random: Random) -> int:
    return random.randint(FIRST_DAY, LAST_DAY)


def _moments(unit: str, zone: str | None = None) -> Kind:
    ticks = TICKS[unit]
    first, last = FIRST_DAY * _SECONDS * ticks, (LAST_DAY + 1) * _SECONDS * ticks - 1
    first, last = max(first, -(2**63)), min(last, 2**63 - 1)
    return Kind(
        declared="TIMESTAMP",
        arrow=pa.timestamp(unit, zone),
        bounds=(first, -ticks, -1, 0, 1, ticks - 1, ticks, last),
        draw=lambda random: random.randint(first, last),
        unique=lambda random, number: number * ticks + random.randrange(ticks),
    )


def _uuids(arrow: pa.DataType, least: int = 1) -> Kind:
    def shown(value: int) -> str | bytes:
        digits = f"{value:032x}"
        dashed = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return dashed if arrow == pa.string() else value.to_bytes(16)

    return Kind(
        declared="UUID",
        arrow=arrow,
        bounds=tuple(map(shown, (least, 2, 2**63, 2**64, 2**127, 2**128 - 1))),
        draw=lambda random: shown(random.getrandbits(128)),
        unique=lambda random, number: shown(number << 96 | random.getrandbits(96)),
    )


def _texts(arrow: pa.DataType, bounds: tuple[str, ...]) -> Kind:
    def unique(random: Random, number: int) -> str:
        return f"{_text(random)[:20]}{number}"

    return Kind(declared="STRING", arrow=arrow, bounds=bounds, draw=_text, unique=unique)


def _blobs(arrow: pa.DataType, width: int | None = None) -> Kind:
    def draw(random: Random) -> bytes:
        return random.randbytes(random.choice((0, 1, 16, 300)) if width is None else width)

    bounds = (b"\x00", b"", b"\xff\xfe", b"'\\x41\"", b"\x00" * 40)
    fitting = (
        bounds
        if width is None
        else tuple((b * width)[:width].ljust(width, b"\x00") for b in bounds)
    )
    return Kind(declared="BLOB", arrow=arrow, bounds=fitting, draw=draw)


def _lists(
    item: Kind, arrow: pa.DataType | None = None, *, length: int | None = None, nulls: bool = False
) -> Kind:
    def draw(random: Random) -> list[Any]:
        size = random.choice((0, 1, 2, 5, 40)) if length is None else length
        return [
            None
            if nulls and random.random() < 0.2
            else random.choice((item.draw(random), random.choice(item.bounds)))
            for _ in range(size)
        ]

    whole = list(item.bounds)
    bounds = ([], [item.bounds[0]], whole) + (
        ([None], [*whole, None], [None] * 30) if nulls else ()
    )
    fitting = bounds if length is None else tuple((b + whole)[:length] for b in bounds)
    kind = pa.list_(item.arrow) if arrow is None else arrow
    return Kind(declared="LIST", arrow=kind, bounds=fitting, draw=draw)


def _structs(first: Kind, second: Kind) -> Kind:
    def draw(random: Random) -> dict[str, Any]:
        return {
            "a": random.choice((None, first.draw(random))),
            "b": random.choice((None, second.draw(random))),
        }

    bounds = (
        {"a": None, "b": None},
        {"a": first.bounds[0], "b": second.bounds[0]},
        {"a": first.bounds[-1], "b": None},
    )
    arrow = pa.struct([("a", first.arrow), ("b", second.arrow)])
    return Kind(declared="STRUCT", arrow=arrow, bounds=bounds, draw=draw)


def _maps(key: Kind, item: Kind) -> Kind:
    def draw(random: Random) -> list[tuple[Any, Any]]:
        pairs = {
            key.draw(random): random.choice((None, item.draw(random)))
            for _ in range(random.randrange(4))
        }
        return list(pairs.items())

    bounds = ([], [(key.bounds[0], item.bounds[0])], [(key.bounds[1], None)])
    return Kind(declared="MAP", arrow=pa.map_(key.arrow, item.arrow), bounds=bounds, draw=draw)


TEXT_BOUNDS = (
    "",
    " ",
    " padded ",
    "null",
    "NaN",
    "0",
    "'",
    "\\",
    "\\n",
    "a\nb",
    "e\u0301",
    "é",
    "🐞",
    "\ufeff",
    "x" * 6_000,
)
DOUBLE_BOUNDS = (
    -math.inf, -1.7976931348623157e308, -5e-324, -0.0, 0.0, 0.1, 2.0**53 + 1,
    1.7976931348623157e308, math.inf,
)  # fmt: skip
INT64 = _integers("INT64", 64, pa.int64())
STRING = _texts(pa.string(), TEXT_BOUNDS)
SHORT = Kind(declared="STRING", arrow=pa.string(), bounds=TEXT_BOUNDS[:-1], draw=_short_text)
DATE = Kind(
    declared="DATE",
    arrow=pa.date32(),
    bounds=(FIRST_DAY, -25_509, -1, 0, 1, 11_016, LAST_DAY),
    draw=_days,
    unique=lambda random, number: FIRST_DAY + number * 500,
)
DOUBLE = Kind(declared="DOUBLE", arrow=pa.float64(), bounds=DOUBLE_BOUNDS, draw=_double)
NAN = Kind(declared="DOUBLE", arrow=pa.float64(), bounds=(math.nan, 1.5), draw=_double)
FLOAT_BOUNDS = (-math.inf, -3.4028234663852886e38, -1.401298464324817e-45, -0.0, 0.0, 0.5, math.inf)
FLOAT = Kind(declared="FLOAT", arrow=pa.float32(), bounds=FLOAT_BOUNDS, draw=_single)
BOOL = Kind(
    declared="BOOL",
    arrow=pa.bool_(),
    bounds=(True, False),
    draw=lambda random: random.random() < 0.5,
)
UUID = _uuids(pa.string())
ZERO_BYTE = _texts(pa.string(), ("a\x00b", "\x00", "", "b"))

EVERYWHERE: tuple[Kind, ...] = (
    INT64,
    _integers("INT32", 32, pa.int32()),
    _integers("INT16", 16, pa.int16()),
    _integers("INT8", 8, pa.int8()),
    DOUBLE,
    FLOAT,
    STRING,
    _texts(pa.large_string(), TEXT_BOUNDS),
    BOOL,
    DATE,
    _moments("us"),
    _moments("s"),
    _moments("ms"),
    _moments("ns"),
    _moments("us", "Europe/Berlin"),
    UUID,
    _uuids(pa.binary(16)),
    _uuids(pa.uuid()),
    _blobs(pa.binary()),
    _blobs(pa.large_binary()),
    _blobs(pa.binary(5), 5),
    _lists(INT64),
    _lists(SHORT),
    _lists(BOOL),
    _lists(DOUBLE),
    _lists(_lists(INT64)),
    _lists(INT64, pa.large_list(pa.int64())),
    _lists(INT64, pa.list_(pa.int64(), 3), length=3),
)
EMBEDDED: tuple[Kind, ...] = (
    _lists(INT64, nulls=True),
    _lists(SHORT, nulls=True),
    _lists(_lists(INT64, nulls=True), nulls=True),
    _lists(DATE),
    _lists(_moments("us")),
    _lists(_blobs(pa.binary())),
    _lists(_structs(INT64, SHORT), nulls=True),
    _structs(INT64, SHORT),
    _structs(DOUBLE, _lists(INT64)),
    _maps(SHORT, INT64),
    _maps(INT64, _lists(SHORT)),
    ZERO_BYTE,
)
"""Kinds beyond those that FalkorDB holds."""
NOT_ON_RYUGRAPH: tuple[Kind, ...] = (
    NAN,
    _uuids(pa.string(), 0),
    _integers("INT64", 64, pa.int64(), above_least=0),
    _integers("INT32", 32, pa.int32(), above_least=0),
    _integers("INT16", 16, pa.int16(), above_least=0),
    _integers("INT8", 8, pa.int8(), above_least=0),
)
KINDS = {
    "ladybug": (*EVERYWHERE, *EMBEDDED, *NOT_ON_RYUGRAPH, _lists(NAN)),
    "ryugraph": (*EVERYWHERE, *EMBEDDED),
    "falkordb": (*EVERYWHERE, *NOT_ON_RYUGRAPH),
}
KEYS = (INT64, STRING, DATE, UUID)
