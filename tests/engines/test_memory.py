"""A join larger than the memory limit: DuckDB spills and finishes, DataFusion fails with a hint.
Spill space is limited too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engines.contract import EngineLimits
from penstock.engines.errors import EngineFull
from penstock.engines.registry import open_engine

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 800_000
LIMIT = EngineLimits(memory_bytes=64 * 1024**2)
SORT = (
    "SELECT MAX(n), MAX(f0), MAX(f1)"
    " FROM (SELECT f0, f1, ROW_NUMBER() OVER (ORDER BY f1, f0) AS n FROM t)"
)
JOIN = "SELECT l.f0 AS key, l.f1 AS a, r.f1 AS b FROM l JOIN r ON l.f0 = r.f0"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    keys = [f"INV-{number * 7919 % ROWS:010d}" for number in range(ROWS)]
    place = tmp_path_factory.mktemp("join") / "rows.parquet"
    pq.write_table(
        pa.table({"key": keys, "note": [f"a note about {key}, of some length" for key in keys]}),
        place,
    )
    return place


def test_duckdb_spills_and_finishes(file: Path, tmp_path: Path) -> None:
    with open_engine("duckdb", tmp_path, LIMIT) as engine:
        engine.relation("l", [file])
        engine.relation("r", [file])
        assert engine.table("joined", JOIN) == ROWS
        assert engine.rows("SELECT COUNT(*), COUNT(DISTINCT key) FROM joined WHERE a = b") == [
            (ROWS, ROWS)
        ]


def test_datafusion_names_the_engine_that_can(file: Path, tmp_path: Path) -> None:
    with open_engine("datafusion", tmp_path, EngineLimits(memory_bytes=16 * 1024**2)) as engine:
        engine.relation("l", [file])
        engine.relation("r", [file])
        with pytest.raises(EngineFull) as caught:
            engine.table("joined", JOIN)
    assert "duckdb" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "memory_bytes"), [("datafusion", 32 * 1024**2), ("duckdb", 32 * 1024**2)]
)
def test_an_engine_spills_no_more_than_it_may(
    file: Path, tmp_path: Path, name: str, memory_bytes: int
) -> None:
    limits = EngineLimits(memory_bytes=memory_bytes, spill_bytes=1_000_000)
    with open_engine(name, tmp_path, limits) as engine:
        engine.relation("t", [file])
        with pytest.raises(EngineFull, match="temporary disk than the 1,000,000 bytes") as caught:
            engine.rows(SORT)
    assert "reconcile_spill_mb" in (caught.value.hint or "")
