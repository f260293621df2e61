"""One suite for every engine: what the matcher leans on."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

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
    found = [row[0] for row in engine.rows("SELECT _id FROM t ORDER BY _id")]
    assert found == [0, 1, 2, *(i + (1 << ROW_BITS) for i in range(3))]


def test_a_relation_has_the_schema_of_its_files(engine: Engine, files: list[Path]) -> None:
    assert engine.relation("t", files) == ROWS.schema


def test_a_table_keeps_what_a_query_gave_and_counts_it(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    assert engine.table("kept", "SELECT key, amount FROM t WHERE key IS NOT NULL") == 4
    assert engine.rows("SELECT SUM(amount) FROM kept") == [(Decimal("6.60"),)]
    assert engine.table("none", "SELECT key FROM t WHERE key = 'zz'") == 0
    assert engine.rows("SELECT COUNT(*) FROM none") == [(0,)]


def test_rows_made_outside_can_be_joined_and_dropped(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    engine.load("extra", pa.table({"key": ["a"], "n": [7]}))
    assert engine.rows("SELECT t.key, extra.n FROM t JOIN extra ON t.key = extra.key LIMIT 1") == [("a", 7)]
    engine.drop("extra")
    engine.load("extra", pa.table({"n": pa.array([], pa.int64())}))
    assert engine.rows("SELECT COUNT(*) FROM extra") == [(0,)]


def test_a_stream_has_plain_types_and_its_schema_without_rows(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    assert engine.stream("SELECT key, amount FROM t ORDER BY _id").read_all().to_pylist()[:2] == [
        {"key": "a", "amount": Decimal("1.10")},
        {"key": "b", "amount": Decimal("2.20")},
    ]
    nothing = engine.stream("SELECT key, amount FROM t WHERE 1 = 0").read_all()
    assert nothing.schema.types == [pa.string(), pa.decimal128(18, 2)]


@pytest.mark.parametrize(
    ("a", "b", "edits"), [("kitten", "sitting", 3), ("é", "e", 1), ("", "abc", 3), ("straße", "strasse", 2)]
)
def test_edits_are_counted_in_characters(engine: Engine, files: list[Path], a: str, b: str, edits: int) -> None:
    engine.relation("t", files)
    assert engine.rows(f"SELECT {engine.words.edits('a', 'b')} FROM (SELECT '{a}' AS a, '{b}' AS b) AS q") == [(edits,)]


@pytest.mark.parametrize(
    ("a", "b", "answer"), [("acme corp", "corp  acme acme", (2, 2, 2)), ("x", "y", (0, 1, 1)), ("", "a b", (0, 0, 2))]
)
def test_words_are_counted_once(engine: Engine, files: list[Path], a: str, b: str, answer: tuple[int, ...]) -> None:
    engine.relation("t", files)
    w = engine.words
    asked = f"SELECT {w.shared('a', 'b')}, {w.words('a')}, {w.words('b')} FROM (SELECT '{a}' AS a, '{b}' AS b) AS q"
    assert engine.rows(asked) == [answer]


def test_a_day_is_a_number_for_dates_moments_and_text(engine: Engine, files: list[Path]) -> None:
    engine.relation("t", files)
    day = engine.words.day
    assert engine.rows(f"SELECT {day('day')} FROM t ORDER BY _id LIMIT 3") == [(19723,), (-1,), (None,)]
    assert engine.rows(f"SELECT {day('x')} FROM (SELECT '2024-01-01' AS x) AS q") == [(19723,)]
    assert engine.rows(f"SELECT {day('x')} FROM (SELECT TIMESTAMP '2024-01-01 23:59:59' AS x) AS q") == [(19723,)]


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
def test_nothing_else_can_be_read_written_or_set(engine: Engine, files: list[Path], sql: str) -> None:
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
