"""`make bench NAME=reconcile`: our evidence beside bare engines that write the same three outputs, by CPU and memory.

Ours also explains every break, totals both sides and sorts; the bare ones only join. Pair sets are compared by digest.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.figures import Figure, figure, median, publish
from bench.reconcile import generator

GIGABYTE = 1024**3
SIZES = {"1m": (1_000_000, 1.25), "5m": (5_000_000, 1.15)}
WAYS = ("ours_duckdb", "ours_datafusion", "duckdb", "datafusion", "polars")
ROUNDS = 3
say = Console(stderr=True).print


def main() -> int:
    scratch = Path(tempfile.mkdtemp(prefix="penstock-bench-reconcile-"))
    figures: dict[str, Figure] = {}
    try:
        for name, (rows, goal) in SIZES.items():
            (scratch / name).mkdir()
            left, right = generator.one_to_one(scratch / name, rows)
            figures |= _measured(name, left, right, scratch, goal)
        tight = _run(
            "ours_duckdb", scratch / "5m/invoices.parquet", scratch / "5m/payments.parquet", scratch, 512_000_000
        )
        figures["5m_under_512mb_peak"] = figure(tight["peak_mb"], "MB")
        figures["5m_under_512mb_pairs"] = figure(tight["pairs"], "pairs")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return publish("reconcile", figures)


def _measured(name: str, left: Path, right: Path, scratch: Path, goal: float) -> dict[str, Figure]:
    runs = {way: [_run(way, left, right, scratch, 4 * GIGABYTE) for _ in range(ROUNDS)] for way in WAYS}
    digests = {run["digest"] for found in runs.values() for run in found}
    cpu = {way: median([run["cpu"] for run in found]) for way, found in runs.items()}
    for way, value in cpu.items():
        say(f"{name} {way}: {value:.2f} CPU s, {max(r['peak_mb'] for r in runs[way]):.0f} MB")
    return {f"{name}_cpu_{way}": figure(value, "CPU s") for way, value in cpu.items()} | {
        f"{name}_cpu_vs_bare_duckdb": figure(cpu["ours_duckdb"] / cpu["duckdb"], "x", f"<= {goal}"),
        f"{name}_pair_sets": figure(len(digests), "different", "<= 1"),
    }


def _run(way: str, left: Path, right: Path, scratch: Path, memory: int) -> dict[str, Any]:
    out = Path(tempfile.mkdtemp(dir=scratch)) / "out"
    command = [sys.executable, "-m", "bench.reconcile.ways", way, str(left), str(right), str(out), str(memory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shutil.rmtree(out.parent)
    if done.returncode:
        raise RuntimeError(f"{way}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
