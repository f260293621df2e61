"""A recipe over two tables, as a run executes it, and the evidence that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.reconcile.matching.decided import Decided
from penstock.reconcile.matching.execution import Executed, Execution
from penstock.reconcile.matching.matcher import MatchLimits
from penstock.reconcile.recipes import validation

if TYPE_CHECKING:
    from pathlib import Path

SIDE = {"upload": "0" * 32, "primary_key": ["id"]}


def document(
    left_key: str | list[str] = "id",
    right_key: str | list[str] = "id",
    **parts: Any,
) -> dict[str, Any]:
    sources = {
        "left": {**SIDE, "primary_key": left_key},
        "right": {**SIDE, "primary_key": right_key},
    }
    return {"name": "test", "sources": sources, **parts}


def execute(
    folder: Path,
    recipe: dict[str, Any],
    left: pa.Table,
    right: pa.Table,
    *,
    engine: str = "duckdb",
    limits: MatchLimits | None = None,
    decided: Decided | None = None,
) -> Executed:
    folder.mkdir()
    files: dict[Any, list[Path]] = {}
    for name, rows in (("left", left), ("right", right)):
        files[name] = [folder / f"{name}.parquet"]
        pq.write_table(rows, files[name][0])
    return Execution(
        recipe=validation.read(recipe),
        files=files,
        scratch=folder / "scratch",
        engine=engine,
        match_limits=limits or MatchLimits(),
        decided=decided or Decided(),
    ).run()


def rows(executed: Executed, table: str) -> list[dict[str, Any]]:
    files = [file.path for file in executed.evidence.files if file.table == table]
    written: list[dict[str, Any]] = pa.concat_tables(
        [pq.read_table(file) for file in files]
    ).to_pylist()
    return written


def digests(executed: Executed) -> list[tuple[str, str]]:
    return [(file.name, file.sha256) for file in executed.evidence.files]
