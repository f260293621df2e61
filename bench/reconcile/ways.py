"""Runs one contender in a separate process: `… ways WAY CASE LEFT RIGHT OUT MEMORY`.

Prints its cost and a digest of the matched pairs. Imports are not counted: a worker has them
loaded.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from bench.figures import peak_mb
from bench.reconcile.bare import BARE
from bench.reconcile.cases import CASES
from penstock.engines.contract import EngineLimits
from penstock.engines.registry import open_engine
from penstock.reconcile.matching.execution import Execution
from penstock.reconcile.recipes import validation
from penstock.worker.arrow_memory import choose_pool

if TYPE_CHECKING:
    from penstock.reconcile.recipes.model import SideName

OURS = "ours_"


def ours(engine: str, case: str, left: Path, right: Path, out: Path, memory: int) -> None:
    side = {"upload": "0" * 32, "primary_key": ["id"]}
    recipe = validation.read(
        {"name": "bench", "sources": {"left": side, "right": side}, "rules": [CASES[case].rule]}
    )
    limits = EngineLimits(memory_bytes=memory)
    files: dict[SideName, list[Path]] = {"left": [left], "right": [right]}
    done = Execution(
        recipe=recipe, files=files, scratch=out / "work", limits=limits, engine=engine
    ).run()
    for file in done.evidence.files:
        if file.table == "matched":
            (out / "matched").mkdir(exist_ok=True)
            file.path.rename(out / "matched" / file.path.name)


def pairs(out: Path) -> dict[str, Any]:
    """A digest of the set of pairs, whatever their order."""
    where = f"{out}/matched/*.parquet" if (out / "matched").is_dir() else f"{out}/matched.parquet"
    pair = "coalesce(left_id, '') || '|' || coalesce(right_id, '')"
    digest, count = hashlib.sha256(), 0
    with duckdb.connect() as db:
        for batch in db.sql(f"SELECT {pair} AS pair FROM '{where}' ORDER BY pair").to_arrow_reader(
            100_000
        ):
            digest.update("\n".join(batch.column(0).to_pylist()).encode() + b"\n")
            count += batch.num_rows
    return {"pairs": count, "digest": digest.hexdigest()}


def main(way: str, case: str, left: str, right: str, out: str, memory: str) -> None:
    folder = Path(out)
    folder.mkdir(parents=True)
    _warm(way, folder / "warm")
    before, started = _cpu(), time.monotonic()
    if way.startswith(OURS):
        ours(way.removeprefix(OURS), case, Path(left), Path(right), folder, int(memory))
    else:
        BARE[way](case, Path(left), Path(right), folder)
    cpu, wall = _cpu() - before, time.monotonic() - started
    peak = peak_mb()
    print(json.dumps({"cpu": cpu, "wall": wall, "peak_mb": peak} | pairs(folder)))


def _warm(way: str, folder: Path) -> None:
    """Engines are modules of their own, imported with the first that is opened; Arrow's first value
    imports pandas."""
    pa.scalar(1)
    if way.startswith(OURS):
        choose_pool()
        folder.mkdir()
        with open_engine(way.removeprefix(OURS), folder, EngineLimits()):
            pass


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
