"""Both ways of reading a page agree, on pages made to tell them apart."""

from __future__ import annotations

import base64
import datetime as dt
import gc
import json
import random
import string
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.sources.errors import SourceError
from penstock.sources.trino import jsonpage, types
from penstock.sources.trino.csvpage import CsvReader
from penstock.sources.trino.pages import PageDecoder
from penstock.sources.trino.reply import read_reply

Cell = Callable[[random.Random], Any]
PAGES = 6000

_NASTY = [
    "],[",
    "[[",
    "]]",
    '"',
    "\\",
    "/",
    "null",
    "NULL",
    "true",
    "NaN",
    "",
    " ",
    ",",
    "\n",
    "\t",
    "\r",
    "\b",
    "], [",
]
_SIGNS = [
    "\u2028",
    "\u0000",
    "é",
    "名",
    "\U0001f980",
    "'",
    "\\n",
    '\\"',
    "\x7f",
    "#",
    "\ufeff",
    "1970-01-01",
    "0",
]
_PLAIN = [
    "],[",
    '"',
    "\\",
    "/",
    "null",
    "",
    " ",
    ",",
    "é",
    "\U0001f980",
    '","',
    '\\"',
    "]",
    "[",
    "\u2028",
]


def of(
    name: str, *numbers: int, children: tuple[tuple[str, types.TrinoType], ...] = ()
) -> types.TrinoType:
    return types.TrinoType(name=name, numbers=numbers, children=children)


def column(kind: types.TrinoType, name: str = "x") -> types.Column:
    return types.Column(name=name, type=kind, arrow=types.arrow_type(kind))


def text(chance: random.Random) -> str:
    pool = _PLAIN if chance.random() < 0.6 else _NASTY + _SIGNS
    letters = [chance.choice(string.ascii_letters) for _ in range(chance.randrange(4))]
    return "".join(chance.choices(pool + letters, k=chance.randrange(5)))


def decimal(precision: int, scale: int) -> Cell:
    def make(chance: random.Random) -> str:
        whole = str(chance.randrange(10 ** (precision - scale))) if precision > scale else "0"
        digits = f".{chance.randrange(10**scale):0{scale}d}" if scale else ""
        return chance.choice(["", "-"]) + whole + digits

    return make


def double(chance: random.Random) -> object:
    ordinary = chance.uniform(-1e6, 1e6) * 10.0 ** chance.randrange(-300, 300)
    return chance.choice(
        [ordinary, float(chance.randrange(100)), 0.0, -0.0, 5e-324, "NaN", "Infinity", "-Infinity"]
    )


def real(chance: random.Random) -> object:
    return chance.choice(
        [float(f"{chance.uniform(-9, 9):.6e}"), 1.1, 3.4028235e38, "NaN", "-Infinity"]
    )


def moment(digits: int) -> Cell:
    def make(chance: random.Random) -> str:
        first = dt.datetime(1700 if digits > 6 else 1, 1, 1)  # noqa: DTZ001 - text of a local time
        days = 190_000 if digits > 6 else 3_600_000
        when = first + dt.timedelta(days=chance.randrange(days), seconds=chance.randrange(86400))
        fraction = f".{chance.randrange(10**digits):0{digits}d}" if digits else ""
        return f"{when.year:04d}-{when:%m-%d %H:%M:%S}{fraction}"

    return make


def clock(digits: int) -> Cell:
    return lambda chance: moment(digits)(chance)[11:]


SCALARS: list[tuple[types.TrinoType, Cell]] = [
    (of("bigint"), lambda c: c.choice([c.randrange(-(2**63), 2**63), c.randrange(10), 2**63 - 1])),
    (of("integer"), lambda c: c.randrange(-(2**31), 2**31)),
    (of("smallint"), lambda c: c.randrange(-(2**15), 2**15)),
    (of("tinyint"), lambda c: c.randrange(-128, 128)),
    (of("boolean"), lambda c: c.random() < 0.5),
    (of("double"), double),
    (of("real"), real),
    (of("decimal", 38, 10), decimal(38, 10)),
    (of("decimal", 38, 0), decimal(38, 0)),
    (of("decimal", 12, 2), decimal(12, 2)),
    (of("decimal", 5, 5), decimal(5, 5)),
    (of("varchar", 2**31 - 1), text),
    (of("char", 3), text),
    (
        of("json"),
        lambda c: json.dumps({text(c): [text(c), 1, None]}, ensure_ascii=c.random() < 0.3),
    ),
    (of("uuid"), lambda c: f"{c.getrandbits(128):032x}"),
    (of("varbinary"), lambda c: base64.b64encode(c.randbytes(c.randrange(9))).decode()),
    (of("date"), lambda c: moment(0)(c)[:10]),
    (of("timestamp", 0), moment(0)),
    (of("timestamp", 3), moment(3)),
    (of("timestamp", 5), moment(5)),
    (of("timestamp", 6), moment(6)),
    (of("timestamp", 9), moment(9)),
    (of("timestamp", 12), moment(12)),
    (of("timestamp with time zone", 3), moment(3)),
    (of("timestamp with time zone", 7), moment(7)),
    (of("time", 3), clock(3)),
    (of("time", 6), clock(6)),
    (of("time", 9), clock(9)),
    (of("time with time zone", 3), lambda c: clock(3)(c) + "+01:00"),
    (of("interval day to second"), lambda c: f"{c.randrange(9)} 00:00:00.000"),
    (of("ipaddress"), lambda _: "2001:db8::1"),
    (of("unknown"), lambda _: None),
]


def page(chance: random.Random) -> tuple[list[types.Column], list[list[object]]]:
    chosen = [chance.choice(SCALARS) for _ in range(chance.randrange(1, 7))]
    columns = [column(kind, f"c{number}") for number, (kind, _) in enumerate(chosen)]
    nulls = chance.choice([0.0, 0.2, 1.0])
    rows = [
        [None if chance.random() < nulls else cell(chance) for _, cell in chosen]
        for _ in range(chance.randrange(9))
    ]
    return columns, rows


def compact(rows: object, *, escape_slashes: bool = False) -> bytes:
    written = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    return (written.replace("/", "\\/") if escape_slashes else written).encode()


def bits(array: pa.Array) -> pa.Array:
    """Floats as their bits, so that NaN is equal to itself and -0.0 is not 0.0."""
    as_integer = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}
    return array.view(as_integer[array.type]) if array.type in as_integer else array


def same(left: pa.RecordBatch, right: pa.RecordBatch) -> bool:
    return left.schema == right.schema and all(
        bits(a).equals(bits(b)) for a, b in zip(left.columns, right.columns, strict=True)
    )


def test_both_ways_agree_on_thousands_of_hostile_pages() -> None:
    fast = 0
    for seed in range(PAGES):
        chance = random.Random(seed)
        columns, rows = page(chance)
        raw = compact(rows, escape_slashes=chance.random() < 0.2)
        right = jsonpage.read(raw, columns)
        assert right.num_rows == len(rows)
        quick = CsvReader(columns).read(raw)
        assert quick is None or same(quick, right), f"seed {seed}: {raw!r}"
        assert same(PageDecoder(columns).decode(raw, rows=len(rows)), right)
        fast += quick is not None
    assert fast > PAGES / 3


@pytest.mark.parametrize(
    "page",
    [
        b'[["x],[y"]]',
        b'[["a"], ["b"]]',
        b'[\n["a"],\n["b"]\n]',
        b'[["a\\u0041"]]',
        b'[["tab\\t"]]',
        b'[["line\\nbreak"]]',
        b'[ ["a"] ]',
        b"[]",
    ],
)
def test_what_is_no_csv_in_disguise_is_left_to_json(page: bytes) -> None:
    columns = [column(of("varchar"))]
    assert CsvReader(columns).read(page) is None
    assert PageDecoder(columns).decode(page)["x"].to_pylist() == [
        row[0] for row in json.loads(page)
    ]


@pytest.mark.parametrize(
    "page",
    [
        b'[["a\\\\"],["b\\"c"],["d\\/e"],["\\\\n"],["\\\\\\""]]',
        b'[["null"],[null],[""]]',
        b'[["]"],["["]]',
    ],
)
def test_shared_escapes_and_quoted_nulls_take_the_fast_way(page: bytes) -> None:
    quick = CsvReader([column(of("varchar"))]).read(page)
    assert quick is not None
    assert quick["x"].to_pylist() == [row[0] for row in json.loads(page)]


def test_a_nested_column_takes_the_way_of_json() -> None:
    numbers = column(of("array", children=(("", of("bigint")),)))
    assert PageDecoder([numbers]).decode(b"[[[1,2]],[null],[[]]]")["x"].to_pylist() == [
        [1, 2],
        None,
        [],
    ]


@pytest.mark.parametrize(
    "page",
    [
        b"[[1,2]]",
        b"[[1],[2,3]]",
        b"{}",
        b"[[1]",
        b'[["x"]]',
        b"nonsense",
        b"[[99999999999999999999]]",
    ],
)
def test_rows_that_do_not_fit_their_columns_are_an_error(page: bytes) -> None:
    with pytest.raises(SourceError):
        PageDecoder([column(of("bigint"))]).decode(page)


def test_rows_that_are_missing_are_an_error() -> None:
    with pytest.raises(SourceError, match="announced 3 rows and sent 2"):
        PageDecoder([column(of("bigint"))]).decode(b"[[1],[2]]", rows=3)


def test_the_collector_runs_again_after_a_page() -> None:
    jsonpage.read(b"[[1]]", [column(of("bigint"))])
    assert gc.isenabled()


def test_the_envelope_is_parsed_without_its_rows() -> None:
    rows = '[["\\"data\\":[[1]],\\"stats\\":{"],["x"]]'
    body = (
        f'{{"id":"q","nextUri":"u","columns":[],"data":{rows},'
        '"stats":{"state":"RUNNING"},"warnings":[]}'
    )
    reply = read_reply(body.encode())
    assert (reply.query_id, reply.next_uri, reply.state) == ("q", "u", "RUNNING")
    assert reply.rows == rows.encode()


def test_an_envelope_that_is_not_compact_is_read_as_well() -> None:
    body = json.dumps(
        {"id": "q", "data": [[1, "a"], [2, None]], "stats": {"state": "RUNNING"}}, indent=1
    )
    assert read_reply(body.encode()).rows == b'[[1,"a"],[2,null]]'
