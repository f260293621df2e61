"""What a graph server answers is what the source held, value by value, on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.graphdb.contract import NodeTable, Property
from penstock.graphdb.errors import LoadRefused
from penstock.graphdb.falkordb.engine import BYTES_AT_ONCE, statement_batches
from penstock.graphdb.files import load_diagnosis
from penstock.storage.object_store import open_store
from tests.graph_server.roundtrip import cases
from tests.graph_server.roundtrip.columns import KINDS, NULLS, SHAPES
from tests.graph_server.server import graph_server
from tests.graph_server.snapshots import Node, publish

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEED = 20261116


@pytest.mark.parametrize("backend", KINDS)
async def test_every_value_comes_back_as_the_source_held_it(backend: str) -> None:
    case = cases.make(SEED, backend)
    wrong = await cases.run(case)
    assert not wrong, f"{case.replay}:\n" + "\n".join(wrong)


def test_the_cases_have_every_type_and_shape() -> None:
    for backend, kinds in KINDS.items():
        case = cases.make(SEED, backend)
        columns = [
            c
            for table in case.nodes
            for c in table.columns[1:]
            if len(c.values) > cases.MANY[0] - 1
        ]
        assert {c.kind for c in columns} == set(kinds), backend
        assert {c.shape for c in columns} == set(SHAPES)
        assert {c.nulls for c in columns} == set(NULLS)
        assert [bool(len(edge.columns[0].values)) for edge in case.edges] == [True, True, False]


@pytest.mark.parametrize("backend", ["ladybug", "ryugraph"])
async def test_a_snapshot_that_an_older_version_packed_by_deltas_is_served_rightly(
    backend: str,
) -> None:
    case = cases.make(SEED, backend)
    wrong = await cases.run(case, delta_packed=True)
    assert not wrong, f"{case.replay}:\n" + "\n".join(wrong)


async def test_copies_for_the_engine_are_removed_once_it_has_loaded_them(
    short_folder: Path,
) -> None:
    root = short_folder / "storage"
    root.mkdir()
    store = open_store(str(root))
    numbers = [2**63 - 1, -(2**63), 0, 2**62, -1, 7] * 400
    table = pa.table(
        {
            "id": pa.array(range(len(numbers)), pa.int64()),
            "n": pa.array(numbers, pa.int64()),
            "m": pa.array([n % 100 for n in numbers], pa.int8()),
        }
    )
    node = Node(
        label="P", key=("id", "INT64"), properties=(("n", "INT64"), ("m", "INT8")), table=table
    )
    assignment = await publish(store, [node], [], prefix="ada/5/v3/42/", delta_packed=True)
    (file,) = root.rglob("*.parquet")
    group = pq.read_metadata(file).row_group(0)
    packed = [
        group.column(number).path_in_schema
        for number in range(3)
        if "DELTA_BINARY_PACKED" in group.column(number).encodings
    ]
    assert packed == ["id", "n", "m"]
    url = f"file://{root}"
    async with graph_server(
        short_folder / "i", url, assignment, instance_backend="ladybug"
    ) as server:
        assert (await server.plane.outcome())["status"] == "running"
        assert await server.rows("MATCH (p:P) RETURN p.n, p.m ORDER BY p.id") == [
            [n, n % 100] for n in numbers
        ]
        assert not list((short_folder / "i" / "own").rglob("conformed-*")), "the copies are removed"


@pytest.mark.parametrize(
    ("backend", "kind", "values", "message"),
    [
        (
            "ryugraph",
            "INT8",
            pa.array([-128, 3], pa.int8()),
            "v has -128, which this engine cannot store in int8",
        ),
        (
            "ryugraph",
            "UUID",
            pa.array([f"{n:08x}-{'0000-' * 3}{0:012}" for n in range(9)]),
            "the UUID 00000000-0000",
        ),
        ("falkordb", "LIST", pa.array([["a", None]]), "v has null in a list"),
    ],
)
async def test_what_an_engine_cannot_hold_is_refused_by_column(
    short_folder: Path, backend: str, kind: str, values: pa.Array, message: str
) -> None:
    root = short_folder / "storage"
    root.mkdir()
    assignment = await publish(
        open_store(str(root)), [_node(kind, values)], [], prefix="ada/5/v3/42/"
    )
    async with graph_server(
        short_folder / "i", f"file://{root}", assignment, instance_backend=backend
    ) as server:
        outcome = await server.plane.outcome()
    assert outcome["error_code"] == "DATA_LOAD_ERROR", outcome
    assert message in outcome["error_message"]


@pytest.mark.parametrize(
    ("refuse", "values", "message"),
    [
        (
            load_diagnosis.refuse_least_integers,
            pa.array([1, -(2**63)], pa.int64()),
            "v has -9223372036854775808",
        ),
        (
            load_diagnosis.refuse_least_integers,
            pa.array([[5, -(2**31)]], pa.list_(pa.int32())),
            "v has -2147483648",
        ),
        (load_diagnosis.refuse_nan, pa.array([{"f": float("nan")}, None]), "v has NaN"),
        (
            load_diagnosis.refuse_nan,
            pa.array([[("k", float("nan"))]], pa.map_(pa.string(), pa.float64())),
            "v has NaN",
        ),
        (load_diagnosis.refuse_list_items, pa.array([[[1], [None]]]), "v has null in a list"),
        (load_diagnosis.refuse_list_items, pa.array([[1.5, float("nan")]]), "v has NaN in a list"),
    ],
)
def test_it_is_seen_however_deep_it_is(
    tmp_path: Path, refuse: Callable[[NodeTable, list[Path]], None], values: pa.Array, message: str
) -> None:
    table = NodeTable(label="P", key=Property(name="id", type="INT64"))
    file = tmp_path / "file.parquet"
    pq.write_table(pa.table({"v": values}), file)
    with pytest.raises(LoadRefused, match=message):
        refuse(table, [file])
    pq.write_table(pa.table({"v": values.slice(0, 0)}), file)
    refuse(table, [file])


def _node(kind: str, values: pa.Array) -> Node:
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": values})
    return Node(label="P", key=("id", "INT64"), properties=(("v", kind),), table=table)


def test_a_statement_of_falkordb_is_bounded_in_bytes_as_well(tmp_path: Path) -> None:
    texts = [f"{number} " + "x" * 60_000 for number in range(1_000)] + [
        "y" * (2 * BYTES_AT_ONCE),
        None,
        "",
    ]
    file = tmp_path / "file.parquet"
    pq.write_table(pa.table({"t": texts}), file)
    batches = list(statement_batches([file]))
    assert [text for batch in batches for text in batch.column(0).to_pylist()] == texts
    assert all(batch.nbytes <= BYTES_AT_ONCE for batch in batches if batch.num_rows > 1)
    assert len(batches) < 100
