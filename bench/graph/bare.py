"""Benchmarks the engine alone, in its own process: `… bare PLAN.json`, with COPY, queries and
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
    content = json.loads(plan.read_text())
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        database = ladybug.Database(
            f"{folder}/db",
            buffer_pool_size=content["cache_bytes"],
            max_num_threads=content["threads"],
        )
        connection = ladybug.Connection(database)
        result: dict[str, Any] = {"load": _load(connection, content)}
        if content["questions"]:
            result["hops"] = {name: _hops(connection, text) for name, text in CYPHER.items()}
            result["points"] = _points(connection, content["customers"])
            result["fetch"] = min(_fetch(connection) for _ in range(3))
        print(json.dumps(result))


def _load(connection: Any, plan: dict[str, Any]) -> float:
    for statement in plan["tables"]:
        connection.execute(statement)
    began = time.perf_counter()
    for name, files in plan["files"].items():
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
