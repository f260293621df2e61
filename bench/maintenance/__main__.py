"""`make bench NAME=maintenance`: compaction compared with naive ones, planning, scans and expiry.

Each implementation runs in its own process on its own table over the same files; afterwards DuckDB
compares the rows of all tables. PENSTOCK_BENCH_SCALE=0.1 runs with a tenth of the files and writes
no ledger.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.figures import Figure, figure, publish
from bench.maintenance import dataset
from penstock.kit import logging

MB = 1024 * 1024
SNAPSHOTS = 500
LEAST_FILES = 60
"""Of ten partitions, each then has enough files to be worth it."""
say = Console(stderr=True).print


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Small files; `rows` each, with a payload of so many bytes a row."""

    name: str
    count: int
    rows: int
    payload: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A table over such files; `manifests` is how many it is committed in."""

    name: str
    manifests: int
    partitioned: bool
    peers: tuple[str, ...]


ORDERS = ("sorted", "zorder")
LARGE = Files(name="large", count=150, rows=40_000, payload=430, target=128 * MB)
SMALL = Files(name="small", count=500, rows=2_000, payload=30, target=32 * MB)
MANY = Files(name="many", count=5_000, rows=200, payload=30, target=32 * MB)
SHAPES = {
    LARGE: (
        Shape(name="flat", manifests=15, partitioned=False, peers=("naive", "pandas", "duckdb")),
        Shape(name="partitioned", manifests=15, partitioned=True, peers=("naive", "duckdb")),
    ),
    SMALL: (
        Shape(name="flat", manifests=500, partitioned=False, peers=("naive", "pandas", "duckdb")),
        Shape(name="partitioned", manifests=50, partitioned=True, peers=("naive", "duckdb")),
    ),
    MANY: (Shape(name="flat", manifests=50, partitioned=False, peers=("naive",)),),
}


def main(scale: float) -> int:
    logging.configure(level="ERROR")
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-maintenance-"))
    figures: dict[str, Figure] = {}
    try:
        for files, shapes in SHAPES.items():
            paths = dataset.files(
                folder / files.name,
                max(LEAST_FILES, int(files.count * scale)),
                files.rows,
                payload=files.payload,
            )
            for shape in shapes:
                figures |= compaction(folder / "lake", files, shape, paths)
            if files is LARGE:
                figures |= flatness(
                    folder / "lake", files, paths, figures["large_flat_ours_memory"].value
                )
                figures |= ordering(folder / "lake", files, paths)
            shutil.rmtree(folder / files.name)
        figures |= expiry(folder / "history", max(10, int(SNAPSHOTS * scale)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if scale == 1:
        return publish("maintenance", figures)
    for name, result in figures.items():
        say(name, result.value, result.unit, result.goal or "")
    return 0


def compaction(folder: Path, files: Files, shape: Shape, paths: list[str]) -> dict[str, Figure]:
    ways, name = ("ours", *shape.peers), f"{files.name}_{shape.name}"
    opened = dataset.catalog(folder)
    for way in ways:
        dataset.table(
            opened,
            way,
            paths,
            partitioned=shape.partitioned,
            target=files.target,
            manifests=shape.manifests,
        )
    opened.close()
    before = {way: child(way, folder, "ours") for way in ("plan", "scan")}
    costs = {way: child(way, folder, way) for way in ways}
    child(
        "ours_manifests", folder, "ours"
    )  # as every policy does next; what is gone is then not read any more
    after = {way: child(way, folder, "ours") for way in ("plan", "scan")}
    contents = {way: child("content", folder, way)["content"] for way in ways}
    if len({tuple(content[1:]) for content in contents.values()}) > 1:
        raise RuntimeError(f"{name}: the ways do not agree on the rows: {contents}")
    for way, cost in costs.items():
        say(
            f"{name} {way}: {cost['cpu']:.1f} CPU s, {cost['wall']:.1f} s, "
            f"{cost['peak_mb']:.0f} MB, {contents[way][0]} files"
        )
    shutil.rmtree(folder)
    return _figures(name, costs, before, after, goal="<= 0.15" if files is LARGE else None)


def _figures(
    name: str, costs: Costs, before: Costs, after: Costs, *, goal: str | None
) -> dict[str, Figure]:
    """`goal` is for memory beside the naive rewrite's; in a small table both are mostly Python and
    its libraries."""
    naive = costs["naive"]
    cpu, memory = costs["ours"]["cpu"], costs["ours"]["peak_mb"]
    named = {f"{name}_{way}_cpu": figure(cost["cpu"], "CPU s") for way, cost in costs.items()}
    named |= {f"{name}_{way}_memory": figure(cost["peak_mb"], "MB") for way, cost in costs.items()}
    named |= {
        f"{name}_cpu_vs_naive": figure(cpu / naive["cpu"], "x", "<= 0.9"),
        f"{name}_memory_vs_naive": figure(memory / naive["peak_mb"], "x", goal),
        f"{name}_memory_bound": figure(memory, "MB", "<= 600"),
        f"{name}_planning": figure(after["plan"]["cpu"] / before["plan"]["cpu"], "x", "<= 0.2"),
        f"{name}_scan": figure(after["scan"]["cpu"] / before["scan"]["cpu"], "x"),
    }
    for way in costs.keys() & {"duckdb", "pandas"}:
        named[f"{name}_cpu_vs_{way}"] = figure(cpu / costs[way]["cpu"], "x")
    return named


def flatness(folder: Path, files: Files, paths: list[str], whole: float) -> dict[str, Figure]:
    """What memory a third of the table takes, beside all of it."""
    opened = dataset.catalog(folder)
    dataset.table(
        opened,
        "ours",
        paths[: len(paths) // 3],
        partitioned=False,
        target=files.target,
        manifests=5,
    )
    opened.close()
    third = child("ours", folder, "ours")["peak_mb"]
    shutil.rmtree(folder)
    return {"memory_three_times_the_table": figure(whole / third, "x", "<= 1.25")}


def ordering(folder: Path, files: Files, paths: list[str]) -> dict[str, Figure]:
    """The whole table in order is more than memory holds: it spills."""
    opened = dataset.catalog(folder)
    for way in ORDERS:
        dataset.table(opened, way, paths, partitioned=False, target=files.target, manifests=15)
    opened.close()
    costs = {way: child(f"ours_{way}", folder, way) for way in ORDERS}
    shutil.rmtree(folder)
    for way, cost in costs.items():
        say(f"{files.name} {way}: {cost['cpu']:.1f} CPU s, {cost['peak_mb']:.0f} MB")
    return {
        f"{files.name}_{way}_cpu": figure(cost["cpu"], "CPU s") for way, cost in costs.items()
    } | {
        f"{files.name}_{way}_memory_bound": figure(cost["peak_mb"], "MB", "<= 600")
        for way, cost in costs.items()
    }


def expiry(folder: Path, count: int) -> dict[str, Figure]:
    [path] = dataset.files(folder / "files", 1, 100, payload=10)
    opened = dataset.catalog(folder)
    dataset.snapshots(opened, "history", path, count)
    opened.close()
    before = child("plan", folder, "history")
    cost = child("ours_expire", folder, "history")
    child("ours_manifests", folder, "history")
    after = child("plan", folder, "history")
    say(f"expiry of {count}: {cost['cpu']:.1f} CPU s")
    return {
        "expiry_cpu": figure(cost["cpu"], f"CPU s / {count} snapshots", "<= 5"),
        "manifests_planning": figure(after["cpu"] / before["cpu"], "x", "<= 0.2"),
    }


Costs = dict[str, dict[str, Any]]


def child(way: str, folder: Path, name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.maintenance.way", way, str(folder), name]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    output: dict[str, Any] = json.loads(done.stdout)
    return output


if __name__ == "__main__":
    sys.exit(main(float(os.environ.get("PENSTOCK_BENCH_SCALE", "1"))))
