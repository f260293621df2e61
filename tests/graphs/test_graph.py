"""The whole way: a mapping on a warehouse becomes a running graph that answers Cypher, through HTTP
alone."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pytest
import redis

from penstock.accounts.shares import EVERYBODY
from penstock.launchers import supervisor
from penstock.launchers.subprocess import COMMAND
from tests.graphs.deployment import Deployment, shop
from tests.graphs.fleet import Fleet, sailing, sink
from tests.servers.falkor import falkordb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.launchers.conformance import Cluster

CUSTOMER = {
    "label": "Customer",
    "sql": "SELECT id, name, age FROM customers",
    "primary_key": {"name": "id", "type": "INT64"},
    "properties": [{"name": "name", "type": "STRING"}, {"name": "age", "type": "INT32"}],
}
KNOWS = {
    "type": "KNOWS",
    "from_node": "Customer",
    "to_node": "Customer",
    "sql": "SELECT id AS a, (id + 1) % 1000 AS b FROM customers",
    "from_key": "a",
    "to_key": "b",
    "properties": [],
}


@asynccontextmanager
async def shop_fleet(
    database: str, folder: Path, cluster: Cluster | None = None, **changes: Any
) -> AsyncIterator[tuple[Fleet, Callable[..., Awaitable[Any]]]]:
    """A control plane with real graph servers, and how to make one of a mapping on a shop's
    warehouse."""
    async with sailing(
        database, folder / "home", command=COMMAND, cluster=cluster, **changes
    ) as fleet:
        deployment = Deployment(
            services=fleet.services,
            settings=fleet.settings.model_copy(update={"url": str(fleet.http.base_url)}),
            http=fleet.http,
        )
        source = await fleet.ask(
            "POST",
            "/api/data-sources",
            who="olga",
            expect=201,
            name="shop",
            type="duckdb",
            config=shop(folder),
        )
        # A graph is for those who may use the source that it comes from.
        await fleet.ask(
            "PUT",
            f"/api/data-sources/{source['id']}/shares/{EVERYBODY}",
            who="olga",
            role="use",
        )

        async def create(edges: dict[str, Any] = KNOWS, **body: Any) -> Any:
            mapping = await fleet.ask(
                "POST",
                "/api/mappings",
                who="olga",
                expect=201,
                name="shop",
                data_source_id=source["id"],
                node_definitions=[CUSTOMER],
                edge_definitions=[edges],
            )
            async with deployment.working():
                instance = await fleet.create(
                    who="olga", mapping_id=mapping["id"], name="shop", **body
                )
                assert instance["status"] == "waiting_for_snapshot"
                return await fleet.reaches(instance["id"], "running", "failed", within=60)

        try:
            yield fleet, create
        finally:
            await sink(fleet.launcher)


async def test_a_mapping_becomes_a_running_instance_and_answers_cypher_through_http_alone(
    database: str, tmp_path: Path
) -> None:
    async with shop_fleet(database, tmp_path) as (fleet, create_instance):
        instance = await create_instance()
        assert (instance["node_count"], instance["edge_count"]) == (1000, 1000)
        question = {
            "query": "MATCH (a:Customer)-[:KNOWS]->(b:Customer) WHERE a.id = 41 RETURN b.id, b.name"
        }
        answer = await fleet.through(instance, "/query", method="POST", who="bob", json=question)
        assert answer.status_code == 200, answer.text
        assert answer.json()["rows"] == [[42, "c42"]]
        arrow = {"Accept": "application/vnd.apache.arrow.stream"}
        everything = {"query": "MATCH (c:Customer) RETURN c.id ORDER BY c.id"}
        answer = await fleet.through(
            instance, "/query", method="POST", headers=arrow, json=everything
        )
        assert pa.ipc.open_stream(answer.content).read_all()["c.id"].to_pylist() == list(
            range(1000)
        )
        status = (await fleet.through(instance, "/status")).json()
        assert (status["snapshot_id"], status["instance_id"]) == (
            instance["snapshot_id"],
            instance["id"],
        )
        assert (
            await fleet.through(instance, "/shutdown", method="POST", who="olga", json={})
        ).status_code == 403
        refused = await fleet.through(
            instance, "/query", method="POST", json={"query": "CREATE (c:Customer {id: -1})"}
        )
        assert refused.status_code in (400, 403)
        asleep = await fleet.ask("POST", f"/api/instances/{instance['id']}/suspend", who="olga")
        assert asleep["status"] == "suspended"
        await fleet.ask("POST", f"/api/instances/{instance['id']}/resume", who="olga")
        await fleet.reaches(instance["id"], "running", within=30)
        again = await fleet.through(instance, "/query", method="POST", json=question)
        assert again.json()["rows"] == [[42, "c42"]]
        [run] = await fleet.launcher.list()
        folder = (
            fleet.settings.home / "instances" / str(run.handle.instance_id) / str(run.handle.launch)
        )
        ended = await fleet.ask("POST", f"/api/instances/{instance['id']}/terminate", who="olga")
        assert ended["status"] == "terminated"
        assert not folder.exists()


QUESTION = {
    "query": "MATCH (a:Customer)-[:KNOWS]->(b:Customer) WHERE a.id = 41 RETURN b.id, b.name"
}


async def test_an_instance_on_falkordb_brings_its_own_server_and_leaves_nothing_behind(
    database: str, tmp_path: Path
) -> None:
    async with shop_fleet(database, tmp_path) as (fleet, create_instance):
        instance = await create_instance(wrapper_type="falkordb")
        assert (instance["status"], instance["node_count"], instance["edge_count"]) == (
            "running",
            1000,
            1000,
        ), instance
        answer = await fleet.through(instance, "/query", method="POST", who="bob", json=QUESTION)
        assert answer.json()["rows"] == [[42, "c42"]], answer.text
        status = (await fleet.through(instance, "/status")).json()
        pids = status["engine"]["pids"]
        servers = [
            psutil.Process(pid) for pid in pids if psutil.Process(pid).name() == "redis-server"
        ]
        assert len(servers) == 1
        assert not servers[0].net_connections("inet"), "it has no TCP port"
        [run] = await fleet.launcher.list()
        folder = (
            fleet.settings.home / "instances" / str(run.handle.instance_id) / str(run.handle.launch)
        )
        family = [
            psutil.Process(pid)
            for pid in supervisor.family(
                json.loads((folder / supervisor.PROCESS).read_text())["pid"]
            )
        ]
        assert servers[0] in family
        ended = await fleet.ask("POST", f"/api/instances/{instance['id']}/terminate", who="olga")
        assert ended["status"] == "terminated"
        assert not folder.exists()
        assert not any(supervisor.start_time(process.pid) for process in family)


@pytest.mark.parametrize("backend", ["ladybug", "ryugraph", "falkordb"])
async def test_a_reader_who_asks_for_a_thousand_million_rows_costs_nobody_else_the_graph(
    database: str, tmp_path: Path, backend: str
) -> None:
    hostile = {"query": "UNWIND range(1, 1000000000) AS x RETURN count(x)", "timeout_ms": 50_000}
    async with shop_fleet(database, tmp_path) as (fleet, create_instance):
        instance = await create_instance(wrapper_type=backend)
        assert instance["status"] == "running", instance
        [before] = await fleet.launcher.list()
        for _ in range(2):
            refused = await fleet.through(
                instance, "/query", method="POST", who="bob", json=hostile
            )
            assert refused.status_code == 507, refused.text
            assert refused.json()["error"]["code"] == "QUERY_OUT_OF_MEMORY"
            answer = await fleet.through(instance, "/query", method="POST", json=QUESTION)
            assert answer.json()["rows"] == [[42, "c42"]], answer.text
        after = await fleet.ask("GET", f"/api/instances/{instance['id']}", who="olga")
        assert (after["status"], after["started_at"]) == ("running", instance["started_at"])
        assert [run.handle for run in await fleet.launcher.list()] == [before.handle]


async def test_an_instance_uses_the_falkordb_server_that_the_operator_names(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "falkordb"
    place.mkdir()
    with falkordb(place) as url:
        monkeypatch.setenv("PENSTOCK_INSTANCE_FALKORDB_URL", url)
        async with shop_fleet(database, tmp_path) as (fleet, create_instance):
            instance = await create_instance(wrapper_type="falkordb")
            assert instance["status"] == "running", instance
            answer = await fleet.through(instance, "/query", method="POST", json=QUESTION)
            assert answer.json()["rows"] == [[42, "c42"]], answer.text
            with redis.Redis(unix_socket_path=url.removeprefix("unix://")) as client:
                assert client.execute_command("GRAPH.LIST") == [
                    f"penstock-{instance['id']}".encode()
                ]
                await fleet.ask("POST", f"/api/instances/{instance['id']}/terminate", who="olga")
                assert client.execute_command("GRAPH.LIST") == []


async def test_what_the_operator_sets_for_graph_servers_reaches_them(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dangling = KNOWS | {"sql": "SELECT id AS a, id + 1 AS b FROM customers"}
    async with shop_fleet(database, tmp_path) as (_, create_instance):
        failed = await create_instance(edges=dangling)
        assert (failed["status"], failed["error_code"]) == ("failed", "DATA_LOAD_ERROR")
        assert "PENSTOCK_INSTANCE_DANGLING_EDGES" in failed["error_message"]
    monkeypatch.setenv("PENSTOCK_INSTANCE_DANGLING_EDGES", "drop")
    monkeypatch.setenv("PENSTOCK_INSTANCE_MAX_ROWS", "7")
    async with sailing(database, tmp_path / "home", command=COMMAND) as fleet:
        await fleet.ask("POST", f"/api/instances/{failed['id']}/resume", who="olga")
        instance = await fleet.reaches(failed["id"], "running", within=60)
        assert instance["edge_count"] == 999
        everything = {"query": "MATCH (c:Customer) RETURN c.id"}
        answer = (await fleet.through(instance, "/query", method="POST", json=everything)).json()
        assert (answer["row_count"], answer["truncated"]) == (7, True)
        await sink(fleet.launcher)
