"""Runs the matcher on two tables and a recipe document."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.contract import EngineLimits
from penstock.engines.registry import open_engine
from penstock.reconcile.matching.column import columns
from penstock.reconcile.matching.matcher import Matching, MatchLimits
from penstock.reconcile.recipes import validation
from penstock.reconcile.staging.statistics import narrowed

if TYPE_CHECKING:
    from collections.abc import Iterator


def recipe(**parts: Any) -> dict[str, Any]:
    """A recipe document; its sources are uploads, because tests pass the files directly."""
    side = {"upload": "0" * 32, "primary_key": ["id"]}
    return {"name": "test", "sources": {"left": side, "right": side}, **parts}


@contextmanager
def matching(
    document: dict[str, Any],
    left: pa.Table,
    right: pa.Table,
    *,
    engine: str = "duckdb",
    limits: MatchLimits | None = None,
) -> Iterator[Matching]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / f"{side}.parquet" for side in ("left", "right")]
        for rows, file in zip((left, right), files, strict=True):
            pq.write_table(rows, file)
        (folder / "scratch").mkdir()
        with open_engine(
            engine, folder / "scratch", EngineLimits(memory_bytes=512 * 1024**2)
        ) as opened:
            read = validation.read(document)
            sides = [
                narrowed(columns(opened.relation(f"{file.stem}_rows", [file])), [file])
                for file in files
            ]
            validation.check(read, *sides)
            yield Matching(opened, read, *sides, limits=limits)


def links(
    document: dict[str, Any], left: pa.Table, right: pa.Table, **options: Any
) -> dict[str, set[tuple[Any, ...]]]:
    """By rule: (left id, right id, ambiguous)."""
    with matching(document, left, right, **options) as at_work:
        at_work.run()
        return {
            linked.name: set(
                at_work.engine.rows(
                    f"SELECT l.p0, r.p0, m.ambiguous FROM {linked.rows} AS m"
                    " LEFT JOIN l ON l._id = m.l LEFT JOIN r ON r._id = m.r"
                )
            )
            for linked in at_work.links
        }
