"""Runs one algorithm in a forked child process: map the graph, compute, write the result files.

The child limits itself to the order's memory, and the kernel's OOM killer takes it first.
"""

from __future__ import annotations

import resource
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graphdb.algorithms.algorithm import Outcome, Task
from penstock.graphdb.algorithms.bridge import call
from penstock.graphdb.algorithms.catalog import algorithm, direction, run
from penstock.graphdb.algorithms.errors import AlgorithmFailed, AlgorithmOutOfMemory
from penstock.graphdb.algorithms.functions import function
from penstock.graphdb.algorithms.parameters import check
from penstock.graphdb.algorithms.result_transfer import read_edges, read_nodes, read_topology
from penstock.graphdb.files import arrow_file
from penstock.kit.errors import PenstockError
from penstock.kit.json_value import JsonValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphdb.algorithms.nodes import Nodes
    from penstock.graphdb.algorithms.order import Computed, Failure, Order, ValuesFile
    from penstock.kit.json_value import JsonValue

_VALUES_SHOWN = 10_000


def carry_out(order: Order, progress: Callable[[float], None]) -> None:
    """Compute, and write a result or an error to the order's folder; the process ends after it."""
    _limit(order.memory_bytes)
    try:
        _write_result(order, compute(order, progress))
    except PenstockError as error:
        _write_error(order, error)
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        _write_error(order, out_of_memory(order.memory_bytes))
    except Exception as error:
        traceback.print_exc()
        _write_error(
            order,
            AlgorithmFailed(f"{order.name} failed: {type(error).__name__}: {str(error)[:500]}"),
        )


def compute(order: Order, progress: Callable[[float], None]) -> tuple[Nodes, Outcome]:
    nodes, properties, holes = read_nodes(order.data, order.selection)
    graph = read_topology(order.data, order.selection, nodes, holes)
    if order.kind == "native":
        chosen = algorithm(order.name)
        parameters = check(chosen.parameters, order.parameters)
        way = direction(chosen, order.directed)
        task = Task(
            graph=graph,
            directed=way,
            parameters=parameters,
            progress=progress,
            properties=properties,
        )
        return nodes, run(chosen, task)
    weight, edges = order.selection.weight, read_edges(order.data, order.selection, holes)
    outcome = call(
        function(order.name),
        order.parameters,
        graph=graph,
        edges=edges,
        properties=properties,
        weight=weight,
        directed=order.directed,
    )
    return nodes, outcome


def out_of_memory(limit: int | None) -> AlgorithmOutOfMemory:
    allowed = "this machine has" if limit is None else f"its limit of {limit // 2**20} MiB"
    return AlgorithmOutOfMemory(
        f"The algorithm needed more memory than {allowed}.",
        hint="Select fewer labels or types, sample, or start a larger instance.",
        memory_bytes=limit,
    )


def _write_result(order: Order, computed: tuple[Nodes, Outcome]) -> None:
    nodes, outcome = computed
    files: list[ValuesFile] = []
    for suffix, column in outcome.columns.items():
        for number, label in enumerate(order.selection.results):
            path = order.out / f"values-{number}{suffix}.arrow"
            _write_values(path, nodes.keys[nodes.labels.index(label)], column[nodes.span(label)])
            files.append({"label": label, "suffix": suffix, "path": str(path)})
    result = dict(outcome.summary)
    if outcome.columns and order.keep_values:
        result |= _shown(nodes, outcome)
    content: Computed = {"result": result, "files": files}
    _write_json(order.out / "result.json", content)


def _write_values(path: Path, keys: pa.Array, values: pa.Array) -> None:
    """Write only nodes that have a value: the write-back clears the others."""
    table = pa.table({"key": keys, "value": values})
    if values.null_count:
        table = table.filter(pc.is_valid(table["value"]))
    arrow_file.write(table, path)


def _shown(nodes: Nodes, outcome: Outcome) -> dict[str, JsonValue]:
    """The highest values first, up to the limit of a response."""
    first = next(iter(outcome.columns.values()))
    if pa.types.is_nested(first.type):
        order = pa.array(range(len(first)))
    else:
        order = pc.array_sort_indices(first, order="descending")
    rows = order[:_VALUES_SHOWN]
    columns = {
        suffix.lstrip("_") or "value": c.take(rows).to_pylist()
        for suffix, c in outcome.columns.items()
    }
    ids = nodes.ids(rows.to_numpy(zero_copy_only=False))
    table = {"id": ids, **columns}
    listed: list[JsonValue] = [
        dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)
    ]
    return {"values": listed, "values_truncated": len(first) > _VALUES_SHOWN}


def _write_error(order: Order, error: PenstockError) -> None:
    content: Failure = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "details": error.details,
    }
    _write_json(order.out / "error.json", content)


def _write_json(path: Path, content: object) -> None:
    begun = path.with_suffix(".part")
    begun.write_bytes(orjson.dumps(content, default=str, option=orjson.OPT_SERIALIZE_NUMPY))
    begun.rename(path)


def _limit(memory_bytes: int | None) -> None:
    """`memory_bytes` comes on top of the memory that the libraries use at the fork."""
    with suppress(OSError):  # without access to /proc only the limit below applies
        Path("/proc/self/oom_score_adj").write_text("1000")
    if memory_bytes is not None:
        resource.setrlimit(
            resource.RLIMIT_DATA, (_data_bytes() + memory_bytes, resource.RLIM_INFINITY)
        )


def _data_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))
