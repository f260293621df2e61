"""Graph servers of one machine: they sleep when everything stops, and wake when it is back."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import duckdb
import psutil

from penstock.client import Client

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

NODE = {
    "label": "Person",
    "sql": "SELECT id FROM people",
    "primary_key": {"name": "id", "type": "INT64"},
    "properties": [],
}


class Http:
    """The API of whatever runs in a home."""

    def __init__(self, cli: Cli) -> None:
        self._url = json.loads((cli.home / "run" / "up.json").read_text())["url"]
        self._token = (cli.home / "secrets" / "operator_token").read_text().strip()

    def __call__(self, method: str, path: str, **body: Any) -> Any:
        with Client(self._url, self._token) as ps:
            return ps.transport.call(method, path, json=body or None)

    def reaches(self, instance_id: int, status: str) -> dict[str, Any]:
        until = time.monotonic() + 60
        instance: dict[str, Any]
        while (instance := self("GET", f"/api/instances/{instance_id}")["data"])[
            "status"
        ] != status:
            assert time.monotonic() < until, instance
            assert instance["status"] != "failed", instance
            time.sleep(0.1)
        return instance


def servers(home: Path) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if str(home / "instances") in " ".join(process.info["cmdline"] or ())
    ]


def test_graph_servers_sleep_when_everything_stops_and_wake_when_it_is_back(
    cli: Cli, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as db:
        db.execute("CREATE TABLE people AS SELECT range AS id FROM range(5)")
    assert cli("up", "--detach", "--port", "0").code == 0
    try:
        ask = Http(cli)
        config = {"database": str(tmp_path / "people.duckdb")}
        source = ask("POST", "/api/data-sources", name="people", type="duckdb", config=config)[
            "data"
        ]
        mapping = ask(
            "POST",
            "/api/mappings",
            name="people",
            data_source_id=source["id"],
            node_definitions=[NODE],
        )["data"]
        created = ask("POST", "/api/instances", name="people", mapping_id=mapping["id"])["data"]
        assert ask.reaches(created["id"], "running")["node_count"] == 5
        assert servers(cli.home)
        assert cli("down").code == 0
        assert servers(cli.home) == []
        assert cli("up", "--detach", "--port", "0").code == 0
        ask = Http(cli)
        assert ask("GET", f"/api/instances/{created['id']}")["data"]["status"] == "suspended"
        ask("POST", f"/api/instances/{created['id']}/resume")
        instance = ask.reaches(created["id"], "running")
        answer = ask(
            "POST",
            f"/wrapper/{instance['url_slug']}/query",
            query="MATCH (p:Person) RETURN count(*)",
        )
        assert answer["rows"] == [[5]]
    finally:
        cli("down")
    assert servers(cli.home) == []
