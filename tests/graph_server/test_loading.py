"""The start of a graph server: what it says while it loads, and how it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.storage.object_store import open_store
from tests.graph_server.conftest import CITY, EDGES, KNOWS, LIVES, NODES, PERSON
from tests.graph_server.server import graph_server, running_server
from tests.graph_server.snapshots import Edge, Node, assignment, publish
from tests.servers.http import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PREFIX = "ada/5/v3/42/"


async def published(
    folder: Path, nodes: Sequence[Node] = NODES, edges: Sequence[Edge] = EDGES
) -> tuple[str, dict[str, Any]]:
    root = folder / "storage"
    root.mkdir()
    return f"file://{root}", await publish(open_store(str(root)), nodes, edges, prefix=PREFIX)


async def failure(
    folder: Path, storage: str, mapping: dict[str, Any] | None, **settings: str
) -> dict[str, Any]:
    """The one report of a start that failed; the process must be gone, and not with 0."""
    async with graph_server(folder / "i", storage, mapping, **settings) as server:
        outcome = await server.plane.outcome()
        assert outcome["status"] == "failed", server.log.read_text()
        assert await server.exit_code() == 1
        assert len(server.plane.told("status")) == 1
        assert server.plane.told("progress")[-1]["phase"] == "failed"
        assert "Traceback" in outcome["stack_trace"]
        return outcome


async def test_each_step_is_told_as_it_happens(short_folder: Path) -> None:
    storage, mapping = await published(short_folder)
    async with running_server(short_folder / "i", storage, mapping) as server:
        reports = server.plane.told("progress")
    assert list(dict.fromkeys(report["phase"] for report in reports)) == [
        "downloading",
        "loading_schema",
        "loading_data",
        "ready",
    ]
    assert {report["current_step"] for report in reports} >= {
        "downloaded",
        "schema_created",
        "Person",
        "KNOWS",
    }
    steps = [(s["name"], s.get("type"), s["status"], s["row_count"]) for s in reports[-1]["steps"]]
    assert steps == [
        ("pod_scheduled", None, "completed", None),
        ("downloaded", None, "completed", None),
        ("schema_created", None, "completed", None),
        ("Person", "node", "completed", 3),
        ("City", "node", "completed", 2),
        ("KNOWS", "edge", "completed", 2),
        ("LIVES_IN", "edge", "completed", 2),
    ]


async def test_health_answers_before_the_graph_is_there(short_folder: Path) -> None:
    storage, mapping = await published(short_folder)
    async with graph_server(short_folder / "i", storage, None) as server:
        hold = Fault(misdeed="reset", path="/api/internal/instances", times=4)
        server.plane.faults.append(hold)
        server.plane.assignment = mapping
        await server.plane.heard("asked")
        assert (await server.http.get("/health")).json()["status"] == "healthy"
        assert (await server.http.get("/ready")).status_code == 503
        early = await server.query("RETURN 1")
        assert (early.status_code, early.json()["error"]["code"]) == (503, "NOT_READY")
        assert (await server.plane.outcome())["status"] == "running"
        assert hold.times == 0
        assert (await server.http.get("/ready")).status_code == 200


async def test_an_unknown_instance_is_a_mapping_error(short_folder: Path) -> None:
    storage, _ = await published(short_folder)
    outcome = await failure(short_folder, storage, None)
    assert (outcome["error_code"], outcome["failed_phase"]) == (
        "MAPPING_FETCH_ERROR",
        "pod_scheduled",
    )


async def test_a_snapshot_without_a_manifest_is_not_loaded(short_folder: Path) -> None:
    storage, mapping = await published(short_folder)
    (short_folder / "storage" / PREFIX / "manifest.json").unlink()
    outcome = await failure(short_folder, storage, mapping)
    assert (outcome["error_code"], outcome["failed_phase"]) == ("DATA_LOAD_ERROR", "downloading")


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[8] ^= 0xFF
    file.write_bytes(bytes(data))


def _lose_a_row(file: Path) -> None:
    pq.write_table(pq.read_table(file).slice(1), file)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_cut, "bytes, not"),
        (_flip, "digest"),
        (_lose_a_row, "bytes, not"),
        (lambda f: f.unlink(), "missing"),
    ],
)
async def test_a_file_that_is_not_what_was_written_is_found(
    short_folder: Path, damage: Callable[[Path], None], words: str
) -> None:
    storage, mapping = await published(short_folder)
    damage(next((short_folder / "storage" / PREFIX / "nodes/Person").glob("*.parquet")))
    outcome = await failure(short_folder, storage, mapping)
    assert outcome["error_code"] == "DATA_LOAD_ERROR"
    assert words in outcome["error_message"]


async def test_an_edge_without_endpoint_fails_the_start_with_examples(short_folder: Path) -> None:
    bad = Edge(
        type="KNOWS", ends=("Person", "Person"), table=pa.table({"a": [1, 77, 78], "b": [2, 1, 99]})
    )
    storage, mapping = await published(short_folder, edges=[bad])
    outcome = await failure(short_folder, storage, mapping)
    assert (outcome["error_code"], outcome["failed_phase"]) == ("DATA_LOAD_ERROR", "loading_data")
    assert "2 rows refer to a missing Person in a, for example 77, 78" in outcome["error_message"]
    assert "1 rows refer to a missing Person in b, for example 99" in outcome["error_message"]


async def test_edges_without_endpoint_are_dropped_on_request(short_folder: Path) -> None:
    bad = Edge(
        type="KNOWS", ends=("Person", "Person"), table=pa.table({"a": [1, 77, 78], "b": [2, 1, 99]})
    )
    storage, mapping = await published(short_folder, edges=[bad])
    async with running_server(
        short_folder / "i", storage, mapping, instance_dangling_edges="drop"
    ) as server:
        assert await server.rows("MATCH (a)-[:KNOWS]->(b) RETURN a.id, b.id") == [[1, 2]]
        assert (await server.plane.outcome())["graph_stats"] == {"node_count": 5, "edge_count": 1}


async def test_a_key_that_is_there_twice_fails_the_start(short_folder: Path) -> None:
    twice = Node(
        label="City", key=("name", "STRING"), table=pa.table({"name": ["Rome", "Oslo", "Rome"]})
    )
    storage, mapping = await published(short_folder, nodes=[PERSON, twice], edges=[KNOWS])
    outcome = await failure(short_folder, storage, mapping)
    assert outcome["error_code"] == "DATA_LOAD_ERROR"
    assert (
        "1 values of the primary key name are duplicates, for example Rome"
        in outcome["error_message"]
    )


async def test_a_column_of_which_nobody_knows_the_inside_is_a_schema_error(
    short_folder: Path,
) -> None:
    storage, mapping = await published(short_folder, nodes=[CITY], edges=[])
    mapping["node_definitions"][0]["properties"] = [{"name": "tags", "type": "LIST"}]
    outcome = await failure(short_folder, storage, mapping)
    assert (outcome["error_code"], outcome["failed_phase"]) == (
        "SCHEMA_CREATE_ERROR",
        "loading_schema",
    )


async def test_a_definition_that_differs_from_the_files_is_not_loaded(short_folder: Path) -> None:
    storage, mapping = await published(short_folder, nodes=[CITY], edges=[])
    mapping["node_definitions"][0]["properties"] = [{"name": "mayor", "type": "STRING"}]
    outcome = await failure(short_folder, storage, mapping)
    assert (outcome["error_code"], "mayor" in outcome["error_message"]) == ("DATA_LOAD_ERROR", True)


async def test_names_that_are_keywords_and_types_with_several_pairs_are_loaded(
    short_folder: Path,
) -> None:
    order = Node(
        label="Order", key=("limit", "STRING"), properties=(("match", "INT32"),), table=_orders()
    )
    own = Edge(
        type="SET",
        ends=("Order", "Order"),
        table=pa.table({"a": ["x"], "b": ["y"]}),
        with_pair=True,
    )
    other = Edge(
        type="SET",
        ends=("Order", "City"),
        properties=(("return", "DOUBLE"),),
        table=pa.table({"a": ["x"], "b": ["London"], "return": [0.5]}),
        with_pair=True,
    )
    storage, mapping = await published(short_folder, nodes=[order, CITY], edges=[own, other])
    async with running_server(short_folder / "i", storage, mapping) as server:
        rows = await server.rows(
            "MATCH (a:`Order`)-[e:`SET`]->(b) RETURN a.`limit`, e.`return`, label(b) ORDER BY 2"
        )
        assert sorted(rows, key=str) == [["x", 0.5, "City"], ["x", None, "Order"]]
        tables = (await server.http.get("/schema")).json()
        assert [(t["from_node"], t["to_node"], t["edge_count"]) for t in tables["edge_tables"]] == [
            ("Order", "Order", 1),
            ("Order", "City", 1),
        ]


async def test_what_nobody_foresaw_is_reported_too(short_folder: Path) -> None:
    storage, mapping = await published(short_folder)
    place = short_folder / "i/own"
    place.mkdir(parents=True)
    (place / "engine").write_text("in the way")
    outcome = await failure(short_folder, storage, mapping)
    assert (outcome["error_code"], "FileExistsError" in outcome["error_message"]) == (
        "STARTUP_FAILED",
        True,
    )


async def test_an_empty_table_is_a_table(short_folder: Path) -> None:
    empty = Node(
        label="City", key=("name", "STRING"), table=pa.table({"name": pa.array([], pa.string())})
    )
    none = Edge(type="LIVES_IN", ends=("Person", "City"), table=LIVES.table.slice(0, 0))
    storage, mapping = await published(short_folder, nodes=[PERSON, empty], edges=[none])
    async with running_server(short_folder / "i", storage, mapping) as server:
        assert await server.rows("MATCH (n:City) RETURN count(*)") == [[0]]


async def test_a_restart_in_the_same_folder_begins_anew(short_folder: Path) -> None:
    storage, mapping = await published(short_folder)
    for _ in range(2):
        async with running_server(short_folder / "i", storage, mapping) as server:
            assert await server.rows("MATCH (n) RETURN count(*)") == [[5]]


async def test_a_control_plane_that_is_slow_to_answer_is_waited_for(short_folder: Path) -> None:
    storage, mapping = await published(short_folder)
    async with graph_server(short_folder / "i", storage, mapping) as server:
        server.plane.faults.append(
            Fault(misdeed="reset", method="PUT", path="/api/internal/instances/7/status")
        )
        assert (await server.plane.outcome())["status"] == "running"


async def test_a_server_that_is_not_wanted_any_more_ends(short_folder: Path) -> None:
    storage, mapping = await published(short_folder)
    async with graph_server(short_folder / "i", storage, mapping) as server:
        server.plane.refused = "status"
        assert await server.exit_code() == 1
        assert [body["status"] for body in server.plane.told("status")] == ["running"]


async def test_a_control_plane_that_takes_no_progress_does_not_stop_the_start(
    short_folder: Path,
) -> None:
    storage, mapping = await published(short_folder)
    async with graph_server(
        short_folder / "i", storage, mapping | {"prefix": PREFIX, "gcs_path": "elsewhere"}
    ) as server:
        server.plane.refused = "progress"
        assert (await server.plane.outcome())["status"] == "running"


async def test_sigterm_while_loading_ends_the_server(short_folder: Path) -> None:
    storage, mapping = await published(short_folder)
    async with graph_server(short_folder / "i", storage, mapping) as server:
        server.plane.faults.append(Fault(misdeed="hang", path="/api/internal/instances", times=9))
        await server.plane.heard("asked")
        server.process.terminate()
        assert await server.exit_code() == 0


async def test_an_assignment_elsewhere_is_refused(short_folder: Path) -> None:
    storage, _ = await published(short_folder)
    outcome = await failure(short_folder, storage, assignment("s3://other/ada/", NODES, EDGES))
    assert "not in this server's storage" in outcome["error_message"]


def _orders() -> pa.Table:
    return pa.table({"limit": ["x", "y"], "match": pa.array([1, 2], pa.int32())})
