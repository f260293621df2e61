"""The engine by itself, in a process of its own: `… bare PLAN.json` with its own COPY, queries and
fetches."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ladybug

from bench.figures import median, quantile
from bench.graph.questions import CYPHER, POINT, SCAN, SUPPLIERS

POINTS = 500


def main(plan: Path) -> None:
    said = json.loads(plan.read_text())
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        database = ladybug.Database(
            f"{folder}/db", buffer_pool_size=said["cache_bytes"], max_num_threads=said["threads"]
        )
        connection = ladybug.Connection(database)
        found: dict[str, Any] = {"load": _load(connection, said)}
        if said["questions"]:
            found["hops"] = {name: _hops(connection, text) for name, text in CYPHER.items()}
            found["points"] = _points(connection, said["customers"])
            found["fetch"] = min(_fetch(connection) for _ in range(3))
        print(json.dumps(found))


def _load(connection: Any, said: dict[str, Any]) -> float:
    for statement in said["tables"]:
        connection.execute(statement)
    began = time.perf_counter()
    for name, files in said["files"].items():
        connection.execute(f"COPY {name} FROM {files}")
    return time.perf_counter() - began


def _hops(connection: Any, text: str) -> float:
    times = []
    for key in SUPPLIERS:
        for attempt in range(2):
            began = time.perf_counter()
            connection.execute(text, {"k": key}).get_all()
            times += [time.perf_counter() - began] if attempt else []
    return median(times)


def _points(connection: Any, customers: int) -> dict[str, float]:
    times = []
    for number in range(POINTS):
        began = time.perf_counter()
        connection.execute(POINT, {"k": number * 7919 % customers + 1}).get_all()
        times.append(time.perf_counter() - began)
    return {"p50": quantile(times, 0.5), "p99": quantile(times, 0.99)}


def _fetch(connection: Any) -> float:
    began = time.perf_counter()
    connection.execute(SCAN).get_as_arrow(chunk_size=131_072)
    return time.perf_counter() - began


if __name__ == "__main__":
    main(Path(sys.argv[1]))
