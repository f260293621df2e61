"""Every type that a real Trino has comes out exactly, through the coordinator and through the
spool."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.sources.errors import SourceError, SourceQueryError
from penstock.sources.trino import types
from penstock.sources.trino.rewrite import in_utc
from tests.sources.conformance import collect
from tests.sources.trino.subjects import RealSubject, opened

if TYPE_CHECKING:
    from tests.servers.trino import Trino

UTC = dt.UTC
# Zurich puts its clocks back at 01:00 UTC: 02:30 comes twice, and only UTC tells the two apart.
EARLIER, LATER = (
    "TIMESTAMP '2024-10-27 00:30:00.123 UTC'",
    "TIMESTAMP '2024-10-27 01:30:00.123 UTC'",
)
ZURICH = "AT TIME ZONE 'Europe/Zurich'"

SCALARS: list[tuple[str, pa.DataType, Any]] = [
    ("BIGINT '-9223372036854775808'", pa.int64(), -(2**63)),
    ("2147483647", pa.int32(), 2**31 - 1),
    ("SMALLINT '-32768'", pa.int16(), -32768),
    ("TINYINT '127'", pa.int8(), 127),
    ("true", pa.bool_(), True),
    ("1e-300", pa.float64(), 1e-300),
    ("-infinity()", pa.float64(), -math.inf),
    ("REAL '3.4028235E38'", pa.float32(), 3.4028234663852886e38),
    (
        "DECIMAL '-12345678901234567890123456789.012345678'",
        pa.decimal128(38, 9),
        Decimal("-12345678901234567890123456789.012345678"),
    ),
    ("DECIMAL '7'", pa.decimal128(1, 0), Decimal(7)),
    (
        "CAST('é\U0001f980 \"quoted\" back\\slash ],[ null' AS varchar)",
        pa.string(),
        'é\U0001f980 "quoted" back\\slash ],[ null',
    ),
    ("CAST('ab' AS char(4))", pa.string(), "ab  "),
    ("''", pa.string(), ""),
    ("'null'", pa.string(), "null"),
    ('JSON \'{"a": [1, null, "x"]}\'', pa.string(), '{"a":[1,null,"x"]}'),
    (
        "UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'",
        pa.string(),
        "12151fd2-7586-11e9-8f9e-2a86e4085a59",
    ),
    ("IPADDRESS '2001:db8::1'", pa.string(), "2001:db8::1"),
    ("X'00ff10'", pa.binary(), b"\x00\xff\x10"),
    ("X''", pa.binary(), b""),
    ("DATE '0001-01-01'", pa.date32(), dt.date(1, 1, 1)),
    ("DATE '9999-12-31'", pa.date32(), dt.date(9999, 12, 31)),
    ("TIME '01:02:03'", pa.time64("us"), dt.time(1, 2, 3)),
    ("TIME '23:59:59.999999'", pa.time64("us"), dt.time(23, 59, 59, 999999)),
    ("TIME '01:02:03.123456789012'", pa.string(), "01:02:03.123456789012"),
    ("TIME '01:02:03.123 +01:00'", pa.string(), "01:02:03.123+01:00"),
    ("TIMESTAMP '1582-10-15 00:00:00'", pa.timestamp("us"), dt.datetime(1582, 10, 15)),  # noqa: DTZ001
    (
        "TIMESTAMP '9999-12-31 23:59:59.999999'",
        pa.timestamp("us"),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    ),
    (
        "TIMESTAMP '2024-02-29 00:00:00.123456789012'",
        pa.string(),
        "2024-02-29 00:00:00.123456789012",
    ),
    (
        f"{EARLIER} {ZURICH}",
        pa.timestamp("us", "UTC"),
        dt.datetime(2024, 10, 27, 0, 30, 0, 123000, UTC),
    ),
    (
        f"{LATER} {ZURICH}",
        pa.timestamp("us", "UTC"),
        dt.datetime(2024, 10, 27, 1, 30, 0, 123000, UTC),
    ),
    (
        "TIMESTAMP '2024-01-01 12:00:00.000001 +05:30'",
        pa.timestamp("us", "UTC"),
        dt.datetime(2024, 1, 1, 6, 30, 0, 1, UTC),
    ),
    ("INTERVAL '2' DAY", pa.string(), "2 00:00:00.000"),
    ("INTERVAL '3' MONTH", pa.string(), "0-3"),
    ("NULL", pa.null(), None),
    ("CAST(NULL AS decimal(20, 3))", pa.decimal128(20, 3), None),
    ("CAST(NULL AS timestamp(3) with time zone)", pa.timestamp("us", "UTC"), None),
]
NESTED: list[tuple[str, pa.DataType, Any]] = [
    ("ARRAY[1, NULL, 3]", pa.list_(pa.int32()), [1, None, 3]),
    ("CAST(ARRAY[] AS array(varchar))", pa.list_(pa.string()), []),
    (
        "ARRAY[ARRAY[DECIMAL '1.5'], NULL, ARRAY[]]",
        pa.list_(pa.list_(pa.decimal128(2, 1))),
        [[Decimal("1.5")], None, []],
    ),
    ("MAP(ARRAY['a', 'null'], ARRAY[nan(), NULL])", pa.map_(pa.string(), pa.float64()), None),
    ("MAP(ARRAY[BIGINT '7'], ARRAY[X'01'])", pa.map_(pa.int64(), pa.binary()), [(7, b"\x01")]),
    (
        "MAP(ARRAY[DATE '2024-01-01'], ARRAY[true])",
        pa.map_(pa.date32(), pa.bool_()),
        [(dt.date(2024, 1, 1), True)],
    ),
    ("MAP(ARRAY[false], ARRAY[1])", pa.map_(pa.bool_(), pa.int32()), [(False, 1)]),
    (
        "CAST(ROW(1, 'x', NULL) AS row(a bigint, \"B c\" varchar, d date))",
        pa.struct([("a", pa.int64()), ("B c", pa.string()), ("d", pa.date32())]),
        {"a": 1, "B c": "x", "d": None},
    ),
    (
        "ROW(1, ROW('y'))",
        pa.struct([("field0", pa.int32()), ("field1", pa.struct([("field0", pa.string())]))]),
        None,
    ),
    (
        f"ARRAY[{EARLIER} {ZURICH}, NULL]",
        pa.list_(pa.timestamp("us", "UTC")),
        [dt.datetime(2024, 10, 27, 0, 30, 0, 123000, UTC), None],
    ),
    (
        f"MAP(ARRAY[{LATER} {ZURICH}], ARRAY[ARRAY[{LATER} {ZURICH}]])",
        pa.map_(pa.timestamp("us", "UTC"), pa.list_(pa.timestamp("us", "UTC"))),
        [
            (
                dt.datetime(2024, 10, 27, 1, 30, 0, 123000, UTC),
                [dt.datetime(2024, 10, 27, 1, 30, 0, 123000, UTC)],
            )
        ],
    ),
    (
        f"CAST(ROW({EARLIER} {ZURICH}, 1) AS row(at timestamp(3) with time zone, n integer))",
        pa.struct([("at", pa.timestamp("us", "UTC")), ("n", pa.int32())]),
        {"at": dt.datetime(2024, 10, 27, 0, 30, 0, 123000, UTC), "n": 1},
    ),
    (
        "CAST(NULL AS row(at timestamp(3) with time zone))",
        pa.struct([("at", pa.timestamp("us", "UTC"))]),
        None,
    ),
]


def query(values: list[tuple[str, pa.DataType, Any]]) -> str:
    return "SELECT " + ", ".join(f"{sql} AS c{number}" for number, (sql, _, _) in enumerate(values))


@pytest.mark.parametrize("encodings", [[], ["json+zstd"]], ids=["direct", "spooled"])
@pytest.mark.parametrize("values", [SCALARS, NESTED], ids=["scalars", "nested"])
async def test_types_and_values_are_exact(
    real_trino: Trino, encodings: list[str], values: list[tuple[str, pa.DataType, Any]]
) -> None:
    async with opened(RealSubject(real_trino), encodings=encodings) as source:
        table = await collect(source, query(values))
    assert table.schema.types == [kind for _, kind, _ in values]
    for (sql, _, expected), column in zip(values, table.columns, strict=True):
        value = column[0].as_py()
        assert expected is None or value == expected, sql


async def test_nanoseconds_are_kept(real_trino: Trino) -> None:
    sql = (
        "SELECT TIMESTAMP '2024-02-29 23:59:59.123456789' AS n,"
        " TIMESTAMP '2024-01-01 00:00:00.123456789 UTC' AS z"
    )
    async with opened(RealSubject(real_trino)) as source:
        table = await collect(source, sql)
    assert table.schema.types == [pa.timestamp("ns"), pa.timestamp("ns", "UTC")]
    assert [column[0].value % 10**9 for column in table.columns] == [123456789, 123456789]


async def test_a_nested_nan_and_a_null_stay_apart(real_trino: Trino) -> None:
    async with opened(RealSubject(real_trino)) as source:
        table = await collect(source, "SELECT ARRAY[nan(), NULL, infinity()] AS a, nan() AS b")
    [first, none, infinite] = table["a"][0].as_py()
    assert math.isnan(first)
    assert (none, infinite) == (None, math.inf)
    assert math.isnan(table["b"][0].as_py())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT approx_set(1) AS sketch",
        "SELECT MAP(ARRAY[ROW(1)], ARRAY[1]) AS m",
        "SELECT tdigest_agg(1.0) AS d",
    ],
)
async def test_a_type_without_an_exact_form_is_refused_before_it_runs(
    real_trino: Trino, sql: str
) -> None:
    async with opened(RealSubject(real_trino)) as source:
        with pytest.raises(SourceQueryError, match="exact"):
            await source.schema(sql)


@pytest.mark.parametrize(
    "value",
    ["DATE '10000-01-01'", "TIMESTAMP '2500-01-01 00:00:00.123456789'", "DATE '-0001-01-01'"],
)
async def test_a_value_that_arrow_cannot_hold_is_an_error_and_not_another_value(
    real_trino: Trino, value: str
) -> None:
    async with opened(RealSubject(real_trino)) as source:
        with pytest.raises(SourceError, match="Column x"):
            await collect(source, f"SELECT {value} AS x")


async def test_moments_are_put_into_utc_whatever_the_query_looks_like(real_trino: Trino) -> None:
    """A comment at its end, a semicolon, names that need quotes, and columns without a zone beside
    them."""
    sql = f'SELECT {EARLIER} {ZURICH} AS "the ""hour""", 1 AS "select" -- and a remark\n;  '
    async with opened(RealSubject(real_trino)) as source:
        table = await collect(source, sql)
    assert table.column_names == ['the "hour"', "select"]
    assert table['the "hour"'][0].as_py() == dt.datetime(2024, 10, 27, 0, 30, 0, 123000, UTC)


def test_a_query_without_moments_stays_as_it_is() -> None:
    described = [{"name": "n", "typeSignature": {"rawType": "bigint", "arguments": []}}]
    assert (
        in_utc("SELECT n FROM t ORDER BY n ;\n", types.columns(described))
        == "SELECT n FROM t ORDER BY n"
    )


async def test_errors_have_trinos_name_and_place(real_trino: Trino) -> None:
    async with opened(RealSubject(real_trino)) as source:
        with pytest.raises(SourceQueryError, match="DIVISION_BY_ZERO: Division by zero"):
            await collect(source, "SELECT 1 / (nationkey - nationkey) AS x FROM tpch.tiny.nation")
        with pytest.raises(SourceQueryError) as error:
            await source.schema("SELECT nope FROM tpch.tiny.nation")
    assert error.value.details["error_name"] == "COLUMN_NOT_FOUND"
