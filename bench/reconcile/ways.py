"""One way to reconcile, in a process of its own: prints what it cost and a digest of the pairs it found."""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

WITHIN = "0.02"
RULE = {
    "name": "exact",
    "conditions": [
        {"left": "ref", "op": "eq", "right": "ref"},
        {"left": "amount", "op": "tolerance", "right": "amount", "absolute": WITHIN},
    ],
}


def ours(left: Path, right: Path, out: Path, memory: int, engine: str) -> Path:
    from penstock.engines.contract import EngineLimits
    from penstock.reconcile import validation
    from penstock.reconcile.execution import Execution

    side = {"upload": "0" * 32, "primary_key": ["id"]}
    recipe = validation.read({"name": "bench", "sources": {"left": side, "right": side}, "rules": [RULE]})
    limits = EngineLimits(memory_bytes=memory)
    files = {"left": [left], "right": [right]}
    done = Execution(recipe=recipe, files=files, scratch=out / "work", limits=limits, engine=engine).run()
    [matched] = [file.path for file in done.evidence.files if file.table == "matched"]
    return matched


def bare_duckdb(left: Path, right: Path, out: Path) -> Path:
    db = duckdb.connect(config={"threads": 2})
    on = f"l.ref = r.ref AND abs(l.amount - r.amount) <= {WITHIN}"
    keys = "l.id AS left_id, r.id AS right_id, l.amount AS la, r.amount AS ra"
    db.execute(f"CREATE TABLE m AS SELECT {keys} FROM '{left}' AS l JOIN '{right}' AS r ON {on}")
    db.execute(f"COPY m TO '{out}/matched.parquet' (COMPRESSION zstd)")
    for name, file, key in (("left", left, "left_id"), ("right", right, "right_id")):
        rest = f"SELECT * FROM '{file}' AS x WHERE NOT EXISTS (SELECT 1 FROM m WHERE m.{key} = x.id)"
        db.execute(f"COPY ({rest}) TO '{out}/{name}.parquet' (COMPRESSION zstd)")
    return out / "matched.parquet"


def bare_datafusion(left: Path, right: Path, out: Path) -> Path:
    from datafusion import SessionConfig, SessionContext

    db = SessionContext(SessionConfig().with_target_partitions(2))
    db.register_parquet("l", str(left))
    db.register_parquet("r", str(right))
    on = f"l.ref = r.ref AND abs(l.amount - r.amount) <= {WITHIN}"
    keys = "l.id AS left_id, r.id AS right_id, l.amount AS la, r.amount AS ra"
    matched = db.sql(f"SELECT {keys} FROM l JOIN r ON {on}").cache()
    db.register_view("m", matched)
    matched.write_parquet(str(out / "matched"), compression="zstd")
    for name, key in (("l", "left_id"), ("r", "right_id")):
        rest = f"SELECT x.* FROM {name} AS x LEFT ANTI JOIN m ON m.{key} = x.id"
        db.sql(rest).write_parquet(str(out / name), compression="zstd")
    return out / "matched"


def bare_polars(left: Path, right: Path, out: Path) -> Path:
    import polars as pl

    a, b = pl.scan_parquet(left), pl.scan_parquet(right)
    near = (pl.col("amount") - pl.col("amount_right")).abs() <= pl.lit(WITHIN).str.to_decimal(scale=2)
    chosen = [pl.col("id").alias("left_id"), pl.col("id_right").alias("right_id"), "amount", "amount_right"]
    matched = a.join(b, on="ref").filter(near).select(chosen).collect(engine="streaming")
    matched.write_parquet(out / "matched.parquet")
    for name, side, key in (("left", a, "left_id"), ("right", b, "right_id")):
        side.join(matched.lazy(), left_on="id", right_on=key, how="anti").collect(engine="streaming").write_parquet(
            out / f"{name}.parquet"
        )
    return out / "matched.parquet"


def pairs(matched: Path) -> dict[str, Any]:
    """A digest of the set of pairs, whatever their order."""
    where = f"{matched}/*.parquet" if matched.is_dir() else str(matched)
    asked = f"SELECT left_id || '|' || right_id AS pair FROM '{where}' ORDER BY pair"
    digest, count = hashlib.sha256(), 0
    with duckdb.connect() as db:
        for batch in db.sql(asked).to_arrow_reader(100_000):
            for pair in batch.column(0).to_pylist():
                digest.update(pair.encode() + b"\n")
            count += batch.num_rows
    return {"pairs": count, "digest": digest.hexdigest()}


def main(way: str, left: str, right: str, out: str, memory: str) -> None:
    folder = Path(out)
    folder.mkdir(parents=True)
    before, started = _cpu(), time.monotonic()
    match way:
        case "duckdb":
            found = bare_duckdb(Path(left), Path(right), folder)
        case "datafusion":
            found = bare_datafusion(Path(left), Path(right), folder)
        case "polars":
            found = bare_polars(Path(left), Path(right), folder)
        case _:
            engine = way.removeprefix("ours_")
            found = ours(Path(left), Path(right), folder, int(memory), engine)
    cpu, wall = _cpu() - before, time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu": cpu, "wall": wall, "peak_mb": peak} | pairs(found)))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
