"""datacompy, as a script for a separate environment: its pins conflict with ours.

`… frames.py pandas|polars LEFT RIGHT OUT`. It joins on the reference, compares the amounts within
the tolerance and writes the same three outputs. Duplicate references are paired by position.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from pathlib import Path

import datacompy
import pandas as pd
import polars as pl

WITHIN = 0.02


def in_pandas(left: str, right: str, out: Path) -> int:
    a, b = (
        _apart(pd.read_parquet(file), side) for file, side in ((left, "left"), (right, "right"))
    )
    compared = datacompy.PandasCompare(a, b, join_columns="ref", abs_tol=WITHIN)
    both = compared.intersect_rows
    same = both["amount_match"]
    matched = both[same].sort_values("left_id")
    matched[["left_id", "right_id", "amount_df1", "amount_df2"]].to_parquet(
        out / "matched.parquet", compression="zstd"
    )
    for frame, key, name in ((a, "left_id", "left"), (b, "right_id", "right")):
        rest = frame[~frame[key].isin(matched[key])].sort_values(key)
        rest.to_parquet(out / f"{name}.parquet", compression="zstd")
    return len(matched)


def in_polars(left: str, right: str, out: Path) -> int:
    a, b = (
        _apart(pl.read_parquet(file), side) for file, side in ((left, "left"), (right, "right"))
    )
    compared = datacompy.PolarsCompare(a, b, join_columns="ref", abs_tol=WITHIN)
    both = compared.intersect_rows.rename({"left_id_df1": "left_id", "right_id_df2": "right_id"})
    matched = both.filter(pl.col("amount_match")).sort("left_id")
    chosen = matched.select("left_id", "right_id", "amount_df1", "amount_df2")
    chosen.write_parquet(out / "matched.parquet", compression="zstd")
    for frame, key, name in ((a, "left_id", "left"), (b, "right_id", "right")):
        frame.join(matched, on=key, how="anti").sort(key).write_parquet(
            out / f"{name}.parquet", compression="zstd"
        )
    return matched.height


def _apart(frame, side: str):  # type: ignore[no-untyped-def]
    """Names of its own for what is not compared, or datacompy would compare it."""
    names = {name: f"{side}_{name}" for name in frame.columns if name not in ("ref", "amount")}
    return frame.rename(columns=names) if isinstance(frame, pd.DataFrame) else frame.rename(names)


def main(way: str, left: str, right: str, out: str) -> None:
    folder = Path(out)
    folder.mkdir(parents=True)
    before, started = _cpu(), time.monotonic()
    pairs = {"pandas": in_pandas, "polars": in_polars}[way](left, right, folder)
    cpu, wall = _cpu() - before, time.monotonic() - started
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(json.dumps({"cpu": cpu, "wall": wall, "peak_mb": int(kilobytes) / 1024, "pairs": pairs}))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
