"""A graph from the command line, on the demo warehouse that a new home brings."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli


@pytest.fixture(scope="module")
def mapping(up: Cli) -> dict[str, Any]:
    until = time.monotonic() + 60
    while not (mappings := up("mapping", "list", "--json").json):
        assert time.monotonic() < until, "the demo warehouse did not come"
    first: dict[str, Any] = mappings[0]
    return first


@pytest.fixture(scope="module")
def graph(up: Cli, mapping: dict[str, Any]) -> Iterator[int]:
    started = up("instance", "start", str(mapping["id"]), "--ttl", "1h", "--json")
    assert started.code == 0, started.err
    assert started.json["status"] == "running"
    yield started.json["id"]
    stopped = up("instance", "stop", str(started.json["id"]), "--force", "--json")
    assert stopped.code == 0, stopped.err


def test_a_new_home_has_a_warehouse_to_explore(up: Cli, mapping: dict[str, Any]) -> None:
    assert mapping["name"] == "Fraud rings"
    [source] = up("source", "list", "--json").json
    assert (source["name"], source["type"]) == ("demo", "duckdb")
    assert "Person" in up("mapping", "show", str(mapping["id"])).out


def test_a_graph_is_asked_and_computed_on(up: Cli, graph: int) -> None:
    asked = up("query", str(graph), "MATCH (d:Device) RETURN count(d) AS devices", "--json")
    assert asked.json["rows"] == [[1800]]
    answer = up("query", str(graph), "MATCH (p:Person) WHERE p.id = 1 RETURN p.name AS name")
    assert "name" in answer.out
    done = up(
        "algo",
        str(graph),
        "scc",
        "--label",
        "Account",
        "--edge",
        "SENT_MUCH",
        "--write",
        "ring",
        "--json",
    )
    assert done.json["status"] == "completed"
    assert "pagerank" in {row["name"] for row in up("algo", str(graph), "list", "--json").json}
    assert str(graph) in up("instance", "list").out
    assert up("instance", "show", str(graph), "--json").json["events"]


def test_mistakes_get_a_sentence_and_their_exit_code(up: Cli, graph: int, tmp_path: Path) -> None:
    assert up("query", str(graph), "CREATE (:Person {id: 0})").code == 4
    assert up("query", "999999", "RETURN 1").code == 3
    assert up("algo", str(graph), "no_such_thing").code == 3
    broken = tmp_path / "mapping.json"
    broken.write_text("{")
    refused = up("mapping", "create", str(broken))
    assert (refused.code, "is not JSON" in refused.err) == (2, True)
    assert up("mapping", "create", str(tmp_path / "none.json")).code == 2
    assert up("source", "add", "x", "duckdb", "--set", "nonsense").code == 2


def test_a_mapping_comes_from_a_file_and_goes(
    up: Cli, mapping: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "mapping.json"
    node = {"label": "City", "sql": "SELECT DISTINCT city AS name FROM people", "properties": []}
    node["primary_key"] = {"name": "name", "type": "STRING"}
    body = {
        "name": "Cities",
        "node_definitions": [node],
        "data_source_id": mapping["data_source_id"],
    }
    file.write_text(json.dumps(body | {"edge_definitions": []}))
    created = up("mapping", "create", str(file), "--json")
    assert created.code == 0, created.err
    snapshot = up("snapshot", "create", str(created.json["id"]), "now", "--json")
    assert (snapshot.json["status"], snapshot.json["node_counts"]) == ("ready", {"City": 7})
    assert up("mapping", "delete", str(created.json["id"])).code == 4
    assert up("snapshot", "delete", str(snapshot.json["id"])).code == 0
    assert up("mapping", "delete", str(created.json["id"])).code == 0
