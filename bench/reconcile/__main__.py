"""`make bench NAME=reconcile`: Penstock's evidence compared with bare engines that write the same
three outputs, by CPU and memory.

Penstock also explains every break and totals both sides; the bare engines only join; all of them
sort. `duckdb_explained` also writes what the evidence contains: reasons, the nearest candidate,
match ids. Pair sets are compared by digest, and those of a million invoices with a reference result
that SQL computes in whole cents.

`python -m bench.reconcile PIECE…` measures some pieces, and PENSTOCK_BENCH_SCALE=0.01 a hundredth
of the rows; both print their results and write nothing to the ledger.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bench.figures import Figure, figure, median, publish, show
from bench.reconcile import generator, staging, waiting
from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GIGABYTE = 1024**3
TIGHT = 512_000_000
WAYS = ("ours_duckdb", "duckdb", "ours_datafusion", "datafusion", "polars")
EXPLAINED = "duckdb_explained"
HERE = Path(__file__).parent
UV = HERE.parents[1] / ".cache" / "bootstrap" / "bin" / "uv"
FRAMES = [
    "--with",
    "datacompy==1.1.0",
    "--with",
    "pandas<3",
    "--with",
    "polars",
    "--with",
    "pyarrow",
]
say = Console(stderr=True).print
Figures = dict[str, Figure]


class Bench:
    def __init__(self, scratch: Path, scale: float) -> None:
        self._scratch = scratch
        self._scale = scale

    def one_to_one_1m(self) -> Figures:
        """Also against the truth, and datacompy."""
        left, right = self._made("one_to_one", 1_000_000)
        cpu, figures = self._measured("1m", "one_to_one", left, right, rounds=5, goal=1.25)
        return (
            figures
            | self._true("1m", left, right, 4 * GIGABYTE)
            | self._frames(left, right, cpu["ours_duckdb"])
        )

    def one_to_one_5m(self) -> Figures:
        """Also within half a gigabyte."""
        left, right = self._made("one_to_one", 5_000_000)
        _, figures = self._measured("5m", "one_to_one", left, right, rounds=3, goal=1.15)
        return figures | self._true("5m_under_512mb", left, right, TIGHT)

    def splits_1m(self) -> Figures:
        """300,000 invoices, a million payments."""
        return self._measured("splits_1m", "splits", *self._made("splits", 300_000), rounds=2)[1]

    def batches_1m(self) -> Figures:
        return self._measured("batches_1m", "batches", *self._made("batches", 1_000_000), rounds=2)[
            1
        ]

    def groups_1m(self) -> Figures:
        return self._measured("groups_1m", "groups", *self._made("groups", 1_000_000), rounds=2)[1]

    def staging(self) -> Figures:
        return asyncio.run(staging.figures(self._scratch, self._scale))

    def waiting(self) -> Figures:
        return asyncio.run(waiting.figures(self._scratch))

    def _made(self, case: str, rows: int) -> tuple[Path, Path]:
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        say(f"{case}: {round(rows * self._scale):,} rows are made")
        return generator.CASES[case](folder, round(rows * self._scale))

    def _measured(
        self,
        name: str,
        case: str,
        left: Path,
        right: Path,
        *,
        rounds: int,
        goal: float | None = None,
    ) -> tuple[Mapping[str, float], Figures]:
        """In turns, so that a noisy minute is everybody's."""
        ways = (*WAYS, EXPLAINED) if case == "one_to_one" else WAYS
        runs: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way in ways:
                runs[way].append(self._run(way, case, left, right, 4 * GIGABYTE))
        cpu = {way: median([run["cpu"] for run in rounds_run]) for way, rounds_run in runs.items()}
        peak = {way: max(run["peak_mb"] for run in rounds_run) for way, rounds_run in runs.items()}
        for way in ways:
            say(f"{name} {way}: {cpu[way]:.2f} CPU s, {peak[way]:.0f} MB")
        digests = {run["digest"] for rounds_run in runs.values() for run in rounds_run}
        figures = {f"{name}_cpu_{way}": figure(cpu[way], "CPU s") for way in ways}
        figures |= {f"{name}_peak_{way}": figure(peak[way], "MB") for way in ways}
        for engine in ("duckdb", "datafusion"):
            limit = f"<= {goal}" if goal is not None and engine == "duckdb" else None
            figures[f"{name}_cpu_vs_bare_{engine}"] = figure(
                cpu[f"ours_{engine}"] / cpu[engine], "x", limit
            )
        if EXPLAINED in ways and goal is not None:
            ratio = cpu["ours_duckdb"] / cpu[EXPLAINED]
            figures[f"{name}_cpu_vs_bare_{EXPLAINED}"] = figure(ratio, "x", f"<= {goal}")
        figures[f"{name}_cpu_vs_polars"] = figure(cpu["ours_duckdb"] / cpu["polars"], "x")
        figures[f"{name}_pair_sets"] = figure(len(digests), "different", "<= 1")
        return cpu, figures

    def _run(
        self, way: str, case: str, left: Path, right: Path, memory: int, keep: Path | None = None
    ) -> Any:
        out = keep or Path(tempfile.mkdtemp(dir=self._scratch)) / "out"
        command = [
            sys.executable,
            "-m",
            "bench.reconcile.ways",
            way,
            case,
            str(left),
            str(right),
            str(out),
        ]
        result = _child([*command, str(memory)])
        if keep is None:
            shutil.rmtree(out.parent)
        return result

    def _true(self, name: str, left: Path, right: Path, memory: int) -> Figures:
        out = Path(tempfile.mkdtemp(dir=self._scratch)) / "out"
        run = self._run("ours_duckdb", "one_to_one", left, right, memory, keep=out)
        matched = str(out / "matched" / "*.parquet")
        truth = _child([sys.executable, str(HERE / "truth.py"), str(left), str(right), matched])
        say(f"{name}: {run['cpu']:.2f} CPU s, {run['peak_mb']:.0f} MB, truth {truth}")
        return {
            f"{name}_pairs": figure(run["pairs"], "pairs"),
            f"{name}_pairs_unlike_the_truth": figure(
                truth["missed"] + truth["wrong"], "pairs", "<= 0"
            ),
            f"{name}_peak": figure(run["peak_mb"], "MB"),
        }

    def _frames(self, left: Path, right: Path, ours: float) -> Figures:
        figures: Figures = {}
        for way in ("pandas", "polars"):
            out = Path(tempfile.mkdtemp(dir=self._scratch)) / "out"
            uv = [str(UV), "run", "--quiet", "--no-project", "--python", sys.executable, *FRAMES]
            try:
                result = _child(
                    [*uv, "python", str(HERE / "frames.py"), way, str(left), str(right), str(out)]
                )
            except (OSError, RuntimeError) as e:
                say(f"datacompy cannot be had here and is left out: {e}")
                return figures
            say(
                f"datacompy on {way}: {result['cpu']:.2f} CPU s, "
                f"{result['peak_mb']:.0f} MB, {result['pairs']} pairs"
            )
            figures[f"1m_cpu_datacompy_{way}"] = figure(result["cpu"], "CPU s")
            goal = ">= 10" if way == "pandas" else None
            figures[f"1m_times_faster_than_datacompy_{way}"] = figure(
                result["cpu"] / ours, "x", goal
            )
        return figures


def main(*pieces: str) -> int:
    logging.configure(level="ERROR")
    scale = float(os.environ.get("PENSTOCK_BENCH_SCALE", "1"))
    scratch = Path(tempfile.mkdtemp(prefix="penstock-bench-reconcile-"))
    scratch.chmod(0o755)
    bench = Bench(scratch, scale)
    cases: dict[str, Callable[[], Figures]] = {
        name: getattr(bench, name)
        for name, member in vars(Bench).items()
        if callable(member) and not name.startswith("_")
    }
    figures: Figures = {}
    try:
        for piece in pieces or cases:
            figures |= cases[piece]()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if pieces or scale != 1:
        return show("reconcile", figures)
    return publish("reconcile", figures)


def _child(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:5])}: {done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
