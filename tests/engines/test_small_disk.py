"""A scratch folder on a full disk: the error names the folder and the setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engines.contract import EngineLimits
from penstock.engines.errors import ScratchFull
from penstock.engines.registry import ENGINES, open_engine
from penstock.reconcile.evidence import parquet_file
from tests.engines.small_disk import small_disk

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 400_000
SIZE = 4 * 1024**2


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    keys = [f"INV-{number * 7919 % ROWS:010d}" for number in range(ROWS)]
    place = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(
        pa.table({"key": keys, "note": [f"a note about {key}, of some length" for key in keys]}),
        place,
    )
    return place


def fill(name: str, folder: Path, file: Path) -> None:
    """DuckDB has no room to spill, DataFusion none for its copy of the files."""
    with open_engine(name, folder, EngineLimits(memory_bytes=32 * 1024**2)) as engine:
        engine.relation("t", [file])
        engine.table("sorted", "SELECT f0, f1 FROM t ORDER BY f1")
        engine.table("joined", "SELECT s.f1, t.f1 AS n FROM sorted AS s JOIN t ON s.f0 = t.f0")


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_an_engine_names_the_folder_and_the_setting(file: Path, tmp_path: Path, name: str) -> None:
    with small_disk(tmp_path / "scratch", SIZE) as folder, pytest.raises(ScratchFull) as caught:
        fill(name, folder, file)
    assert str(folder) in caught.value.message
    assert "TMPDIR" in (caught.value.hint or "")
    assert caught.value.details == {"path": str(folder), "setting": "TMPDIR"}


def test_evidence_that_has_no_room_says_so(file: Path, tmp_path: Path) -> None:
    rows = pq.read_table(file)
    with (
        small_disk(tmp_path / "scratch", SIZE // 64) as folder,
        pytest.raises(ScratchFull) as caught,
    ):
        parquet_file.write("matched", rows.schema, rows.to_batches(), folder)
    assert str(folder) in caught.value.message
