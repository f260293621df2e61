"""Conformance suite of every engine: what the matcher relies on."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engines.contract import ROW_BITS, EngineLimits
from penstock.engines.errors import EngineError, EngineQueryError
from penstock.engines.registry import ENGINES, open_engine
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.engines.contract import Engine

ROWS = pa.table(
    {
        "key": ["a", "b", None],
        "amount": pa.array([Decimal("1.10"), Decimal("2.20"), None], pa.decimal128(18, 2)),
        "day": pa.array([date(2024, 1, 1), date(1969, 12, 31), None]),
    }
)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "it's data"
    folder.mkdir()
    for number in range(2):
        pq.write_table(ROWS, folder / f"part-{number}.parquet", row_group_size=2)
    return sorted(folder.iterdir())


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with open_engine(request.param, scratch, EngineLimits(memory_bytes=256 * 1024**2)) as opened:
        yield opened


def test_every_row_has_the_id_of_its_place(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    ids = [row[0] for row in engine.rows("SELECT _id FROM t ORDER BY _id")]
    assert ids == [0, 1, 2, *(i + (1 << ROW_BITS) for i in range(3))]


def test_a_relation_has_the_schema_of_its_files(engine: Engine, files: list[Path]) -> None:
    assert engine.relation("t", files) == ROWS.schema


def test_a_table_keeps_what_a_query_gave_and_counts_it(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    assert engine.table("kept", "SELECT f0 AS key, f1 AS amount FROM t WHERE f0 IS NOT NULL") == 4
    assert engine.rows("SELECT SUM(amount) FROM kept") == [(Decimal("6.60"),)]
    assert engine.table("none", "SELECT f0 FROM t WHERE f0 = 'zz'") == 0
    assert engine.rows("SELECT COUNT(*) FROM none") == [(0,)]


def test_rows_made_outside_can_be_joined_and_dropped(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    engine.load("extra", pa.table({"key": ["a"], "n": [7]}))
    assert engine.rows("SELECT t.f0, extra.n FROM t JOIN extra ON t.f0 = extra.key LIMIT 1") == [
        ("a", 7)
    ]
    engine.drop("extra")
    engine.load("extra", pa.table({"n": pa.array([], pa.int64())}))
    assert engine.rows("SELECT COUNT(*) FROM extra") == [(0,)]


def test_a_stream_has_plain_types_and_its_schema_without_rows(
    engine: Engine, files: list[Path]
) -> None:
    engine.relation("t", files)
    assert engine.stream(
        "SELECT f0 AS key, f1 AS amount FROM t ORDER BY _id"
    ).read_all().to_pylist()[:2] == [
        {"key": "a", "amount": Decimal("1.10")},
        {"key": "b", "amount": Decimal("2.20")},
    ]
    nothing = engine.stream("SELECT f0, f1 FROM t WHERE 1 = 0").read_all()
    assert nothing.schema.types == [pa.string(), pa.decimal128(18, 2)]


@pytest.mark.parametrize(
    ("a", "b", "edits"),
    [("kitten", "sitting", 3), ("é", "e", 1), ("", "abc", 3), ("straße", "strasse", 2)],
)
def test_edits_are_counted_in_characters(
    engine: Engine, files: list[Path], a: str, b: str, edits: int
) -> None:
    engine.relation("t", files)
    assert engine.rows(
        f"SELECT {engine.dialect.edits('a', 'b')} FROM (SELECT '{a}' AS a, '{b}' AS b) AS q"
    ) == [(edits,)]


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [("acme corp", "corp  acme acme", (2, 2, 2)), ("x", "y", (0, 1, 1)), ("", "a b", (0, 0, 2))],
)
def test_words_are_counted_once(
    engine: Engine, files: list[Path], a: str, b: str, answer: tuple[int, ...]
) -> None:
    engine.relation("t", files)
    w = engine.dialect
    asked = (
        f"SELECT {w.shared('a', 'b')}, {w.words('a')}, {w.words('b')}"
        f" FROM (SELECT '{a}' AS a, '{b}' AS b) AS q"
    )
    assert engine.rows(asked) == [answer]


def test_a_day_is_a_number_and_back(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    dialect = engine.dialect
    days = [(19723,), (-1,), (None,)]
    assert engine.rows(f"SELECT {dialect.day('f2')} FROM t ORDER BY _id LIMIT 3") == days
    assert (
        engine.rows(
            f"SELECT {dialect.day(dialect.date(dialect.day('f2')))} FROM t ORDER BY _id LIMIT 3"
        )
        == days
    )


HOSTILE = [
    "_id",
    "ref",
    "REF",
    "file_index",
    "file_row_number",
    "filename",
    "f1",
    "F0",
    "select",
    'a"b',
    "it's",
    "é",
    " ",
]


def test_columns_are_told_apart_by_their_places_whatever_they_are_called(
    engine: Engine,
    tmp_path: Path,
) -> None:
    rows = pa.table({name: [f"{name}-{number}" for number in range(2)] for name in HOSTILE})
    files = [tmp_path / f"{number}.parquet" for number in range(2)]
    for number, file in enumerate(files):
        pq.write_table(rows.slice(number, 1), file)
    assert engine.relation("t", files).names == HOSTILE
    chosen = ", ".join(f"f{place}" for place in range(len(HOSTILE)))
    assert engine.rows(f"SELECT {chosen} FROM t ORDER BY _id") == [
        tuple(f"{name}-{number}" for name in HOSTILE) for number in range(2)
    ]
    assert engine.rows("SELECT _id FROM t WHERE f2 = 'REF-1'") == [(1 << ROW_BITS,)]


@pytest.mark.parametrize("names", [["b", "a"], ["a"], ["a", "b", "c"], ["a", "B"]])
def test_files_with_other_columns_are_refused(
    engine: Engine,
    tmp_path: Path,
    names: list[str],
) -> None:
    """Columns are read by their places: one in another order would be read for another."""
    for file, columns in (("one", ["a", "b"]), ("other", names)):
        rows = pa.table({name: ["x"] for name in columns})
        pq.write_table(rows, tmp_path / f"{file}.parquet")
    with pytest.raises(EngineQueryError, match=r"other\.parquet has different columns or types"):
        engine.relation("t", [tmp_path / "one.parquet", tmp_path / "other.parquet"])


@pytest.mark.parametrize(
    ("pattern", "text", "alike"),
    [
        ("a%", "abc", True),
        ("a\\%", "a%", True),
        ("a\\%", "abc", False),
        ("a\\\\b", "a\\b", True),
        ("_", "é", True),
    ],
)
def test_a_backslash_takes_the_meaning_of_signs_in_patterns_away(
    engine: Engine,
    pattern: str,
    text: str,
    alike: bool,
) -> None:
    engine.load("t", pa.table({"t": [text]}))
    assert engine.rows(f"SELECT {engine.dialect.like('t', pattern)} FROM t") == [(alike,)]


def test_a_query_that_asks_for_a_failure_ends_with_its_reason(engine: Engine) -> None:
    engine.load("t", pa.table({"n": pa.array([1, 2], pa.int64())}))
    failed = engine.dialect.fail("CAST(n AS VARCHAR) || ' isn''t \"right\"'")
    sql = "SELECT CASE WHEN n = {0} THEN CAST({1} AS BIGINT) ELSE n END AS v FROM t ORDER BY v"
    assert engine.rows(sql.format(3, failed)) == [(1,), (2,)]
    with pytest.raises(EngineQueryError) as caught:
        engine.rows(sql.format(2, failed))
    assert caught.value.message.replace("\\", "") == '2 isn\'t "right".'


@pytest.mark.parametrize(
    ("number", "decimals", "text"),
    [
        (2.675, 2, "2.68"),
        (-0.5, 0, "-1"),
        (1e22, 0, "1" + "0" * 22),
        (0.1, 3, "0.100"),
        (float("nan"), 2, "nan"),
    ],
)
def test_doubles_are_rounded_from_their_shortest_digits(
    engine: Engine,
    number: float,
    decimals: int,
    text: str,
) -> None:
    engine.load("t", pa.table({"f": [number]}))
    assert engine.rows(f"SELECT {engine.dialect.rounded('f', decimals)} FROM t") == [(text,)]


@pytest.mark.parametrize(
    ("number", "by", "whole"),
    [(7, 2, 3), (10**33 - 1, 1, 10**33 - 1), (10**33 - 1, 7, (10**33 - 1) // 7)],
)
def test_long_decimals_are_divided_exactly(
    engine: Engine, number: int, by: int, whole: int
) -> None:
    kind = pa.decimal128(33, 0)
    engine.load("t", pa.table({"a": pa.array([number], kind), "b": pa.array([by], kind)}))
    assert engine.rows(f"SELECT {engine.dialect.whole_quotient('a', 'b')} FROM t") == [
        (Decimal(whole),)
    ]


def test_a_decimal_of_more_than_38_digits_is_exact(engine: Engine, tmp_path: Path) -> None:
    value = Decimal("12345678901234567890123456789012345678.91")
    rows = pa.table({"n": pa.array([value, None], pa.decimal256(40, 2))})
    pq.write_table(rows, tmp_path / "rows.parquet")
    assert engine.relation("t", [tmp_path / "rows.parquet"]) == rows.schema
    assert engine.rows("SELECT f0 FROM t ORDER BY _id") == [(str(value),), (None,)]


@pytest.mark.parametrize(
    ("ticks", "answer"), [(0, 0), (-1, -1), (-10, -1), (-11, -2), (9, 0), (10, 1)]
)
def test_division_rounds_down(engine: Engine, files: list[Path], ticks: int, answer: int) -> None:
    engine.relation("t", files)
    assert engine.rows(
        f"SELECT {engine.dialect.floor_div('n', 10)} FROM (SELECT {ticks} AS n) AS q"
    ) == [(answer,)]


def test_moments_of_every_type_have_the_same_ticks(engine: Engine, tmp_path: Path) -> None:
    columns = {
        f"{unit} {zone}": pa.array([1_706_743_800, -1, None], pa.int64())
        .cast(pa.timestamp("s"))
        .cast(pa.timestamp(unit, zone))
        for unit in ("ms", "us", "ns")
        for zone in (None, "UTC")
    }
    columns["Vienna"] = columns["us UTC"].cast(pa.timestamp("us", "Europe/Vienna"))
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    engine.relation("t", [tmp_path / "rows.parquet"])
    for place, name in enumerate(columns):
        unit, per_second = ("ns", 10**9) if name.startswith("ns") else ("us", 10**6)
        ticks = engine.dialect.ticks(f"f{place}", "ns" if unit == "ns" else "us")
        expected = [(1_706_743_800 * per_second,), (-per_second,), (None,)]
        assert engine.rows(f"SELECT {ticks} FROM t ORDER BY _id") == expected, name


def test_a_zone_is_ahead_of_utc_by_the_same_on_every_engine(
    engine: Engine,
    files: list[Path],
) -> None:
    engine.relation("t", files)
    dates = [(2024, 2), (2024, 7), (2040, 2), (2040, 7), (2500, 7), (9999, 7)]
    moments = [int(datetime(*month, 1, tzinfo=UTC).timestamp()) for month in dates]
    moments += [1_711_846_799, 1_711_846_800, 400 * 31_556_952 + moments[-1]]
    engine.load("moments", pa.table({"t": [*moments, None]}))
    ahead = engine.dialect.zone_offset("Europe/Vienna", "t")
    answers = engine.rows(f"SELECT t, {ahead} FROM moments ORDER BY t NULLS LAST")
    winter, summer = 3600, 7200
    expected = [winter, summer, winter, summer, summer, summer, winter, summer, summer]
    assert dict(answers) == dict(zip(moments, expected, strict=True)) | {None: None}


@pytest.mark.parametrize(
    "zone", ["Asia/Hebron", "Africa/Casablanca", "Europe/Vienna", "America/New_York"]
)
def test_late_moments_have_the_offset_of_their_own_year(
    engine: Engine, files: list[Path], zone: str
) -> None:
    """Some zones have a date for each change up to 2086, and a rule only after it."""
    moments = [
        datetime(year, month, 18, tzinfo=UTC)
        for year in (2050, 2086, 7650, 9998)
        for month in (1, 6, 10)
    ]
    seconds = [int(moment.timestamp()) for moment in moments]
    engine.relation("t", files)
    engine.load("moments", pa.table({"t": seconds}))
    answers = engine.rows(
        f"SELECT t, {engine.dialect.zone_offset(zone, 't')} FROM moments ORDER BY t"
    )
    offsets = [moment.astimezone(ZoneInfo(zone)).utcoffset() for moment in moments]
    assert dict(answers) == {
        at: offset.total_seconds()
        for at, offset in zip(seconds, offsets, strict=True)
        if offset is not None
    }


@pytest.mark.parametrize(
    ("text", "lower"), [("ΟΔΟΣ", "οδοσ"), ("οδος", "οδοσ"), ("İx", "ix"), ("ÀẞK", "àßk")]
)
def test_lower_case_is_the_same_on_every_engine(
    engine: Engine,
    files: list[Path],
    text: str,
    lower: str,
) -> None:
    engine.relation("t", files)
    assert engine.rows(f"SELECT {engine.dialect.lower('x')} FROM (SELECT '{text}' AS x) AS q") == [
        (lower,)
    ]


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        (r"\d", "é٣ a-b_.\u00a0#"),
        (r"\w", "é٣ #-##.\u00a0#"),
        (r"[\W]", "###a#b_##7"),
        (r"\s+", "é٣#a-b_.\u00a07"),
        (r"\ba", "é٣ #-b_.\u00a07"),
        (r"[^\d]+", "#7"),
    ],
)
def test_classes_of_patterns_are_those_of_ascii(
    engine: Engine,
    files: list[Path],
    pattern: str,
    answer: str,
) -> None:
    engine.relation("t", files)
    asked = (
        f"SELECT {engine.dialect.replace('x', pattern, '#')}"
        " FROM (SELECT 'é٣ a-b_.\u00a07' AS x) AS q"
    )
    assert [row[0] for row in engine.rows(asked)] == [answer]


def test_a_file_of_links_is_loaded(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    pq.write_table(pa.table({"g": [1, 2]}), engine.scratch / "links.parquet")
    engine.load_file("links", engine.scratch / "links.parquet")
    assert engine.rows("SELECT g FROM links ORDER BY g") == [(1,), (2,)]


def test_an_error_does_not_show_the_statement(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    with pytest.raises(EngineQueryError) as caught:
        engine.table("wrong", "SELECT CAST(f0 AS DATE) AS day FROM t WHERE f0 IS NOT NULL")
    assert "SELECT" not in caught.value.message
    assert "LINE 1" not in caught.value.message


def test_a_wrong_column_is_an_error_of_the_caller(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    with pytest.raises(EngineQueryError, match="nothing_like_it"):
        engine.rows("SELECT nothing_like_it FROM t")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/hosts'",
        "COPY (SELECT 1) TO '/tmp/penstock-leak.csv'",
        "ATTACH '/tmp/penstock-leak.db' AS leak",
        "SET memory_limit = '64GB'",
        "CREATE EXTERNAL TABLE leak STORED AS CSV LOCATION '/etc/passwd'",
        "INSTALL httpfs",
        "DROP TABLE t",
    ],
)
def test_nothing_else_can_be_read_written_or_set(
    engine: Engine, files: list[Path], sql: str
) -> None:
    engine.relation("t", files)
    with pytest.raises((EngineError, EngineQueryError)):
        engine.rows(sql)


def test_a_cancelled_engine_says_so(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    engine.rows("SELECT 1")
    engine.cancel()


def test_an_unknown_engine_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no engine 'spark'") as caught:
        open_engine("spark", tmp_path, EngineLimits())
    assert "duckdb" in (caught.value.hint or "")


def test_a_value_that_is_no_number_is_not_taken_for_one(engine: Engine, tmp_path: Path) -> None:
    """The statistics of the file say that all values are 1."""
    pq.write_table(pa.table({"n": [1.0, float("nan")]}), tmp_path / "rows.parquet")
    engine.relation("t", [tmp_path / "rows.parquet"])
    assert engine.rows("SELECT COUNT(CASE WHEN isnan(f0) THEN 1 END) FROM t") == [(1,)]
    assert [str(row[0]).lower() for row in engine.rows("SELECT f0 FROM t ORDER BY _id")] == [
        "1.0",
        "nan",
    ]
