"""`make bench NAME=maintenance`: our compaction beside the naive ones, planning before and after, and expiry.

`python -m bench.maintenance --scale 0.1` is a quick look that writes no ledger.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.figures import Figure, figure, publish
from bench.maintenance import lake
from penstock.kit import logging

MB = 1024 * 1024
NAIVE = ("naive", "pandas")
SNAPSHOTS = 500
say = Console(stderr=True).print


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    name: str
    files: int
    rows: int
    payload: int
    target: int
    partitioned: bool

    @property
    def is_large(self) -> bool:
        return self.payload > 100


SHAPES = (
    Shape(name="large_flat", files=150, rows=40_000, payload=430, target=128 * MB, partitioned=False),
    Shape(name="large_partitioned", files=150, rows=40_000, payload=430, target=128 * MB, partitioned=True),
    Shape(name="small_flat", files=500, rows=2_000, payload=30, target=32 * MB, partitioned=False),
    Shape(name="small_partitioned", files=500, rows=2_000, payload=30, target=32 * MB, partitioned=True),
)


def main(scale: float) -> int:
    logging.configure(level="ERROR")
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-maintenance-"))
    figures: dict[str, Figure] = {}
    try:
        for shape in SHAPES:
            figures |= compaction(folder / shape.name, shape, scale)
            shutil.rmtree(folder / shape.name)
        figures |= expiry(folder / "history", max(10, int(SNAPSHOTS * scale)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if scale == 1:
        return publish("maintenance", figures)
    for name, found in figures.items():
        say(name, found.value, found.unit, found.goal or "")
    return 0


def compaction(folder: Path, shape: Shape, scale: float) -> dict[str, Figure]:
    paths = lake.files(folder / "files", max(60, int(shape.files * scale)), shape.rows, payload=shape.payload)
    opened = lake.catalog(folder)
    ways = ("ours", *NAIVE)
    for way in ways:
        lake.table(opened, way, paths, partitioned=shape.partitioned, target=shape.target)
    opened.close()
    before = child("plan", folder, "ours")
    found = {way: child(way, folder, way) for way in ways}
    after = child("plan", folder, "ours")
    contents = {way: child("content", folder, way)["content"] for way in ways}
    if len({tuple(each[1:]) for each in contents.values()}) > 1:
        raise RuntimeError(f"{shape.name}: the ways do not agree on the rows: {contents}")
    for way, cost in found.items():
        say(f"{shape.name} {way}: {cost['cpu']:.1f} CPU s, {cost['peak_mb']:.0f} MB, {contents[way][0]} files")
    best = min(found[way]["cpu"] for way in NAIVE)
    least = min(found[way]["peak_mb"] for way in NAIVE)
    named = {f"{shape.name}_{way}_cpu": figure(found[way]["cpu"], "CPU s") for way in ways}
    named |= {f"{shape.name}_{way}_memory": figure(found[way]["peak_mb"], "MB") for way in ways}
    return named | {
        f"{shape.name}_cpu_vs_naive": figure(found["ours"]["cpu"] / best, "x", "<= 0.9"),
        f"{shape.name}_memory_vs_naive": figure(
            found["ours"]["peak_mb"] / least, "x", "<= 0.15" if shape.is_large else None
        ),
        f"{shape.name}_memory_bound": figure(found["ours"]["peak_mb"], "MB", "<= 600"),
        f"{shape.name}_planning": figure(
            after["cpu"] / before["cpu"], "x", "<= 0.2" if not shape.is_large and not shape.partitioned else None
        ),
    }


def expiry(folder: Path, count: int) -> dict[str, Figure]:
    [path] = lake.files(folder / "files", 1, 100, payload=10)
    opened = lake.catalog(folder)
    lake.snapshots(opened, "history", path, count)
    opened.close()
    before = child("plan", folder, "history")
    found = child("ours_expire", folder, "history")
    child("ours_manifests", folder, "history")
    after = child("plan", folder, "history")
    say(f"expiry of {count}: {found['cpu']:.1f} CPU s")
    return {
        "expiry_cpu": figure(found["cpu"], f"CPU s / {count} snapshots", "<= 5"),
        "manifests_planning": figure(after["cpu"] / before["cpu"], "x", "<= 0.2"),
    }


def child(way: str, folder: Path, name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.maintenance.way", way, str(folder), name]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    sys.exit(main(parser.parse_args().scale))
