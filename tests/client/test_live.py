"""The client against a complete Penstock: database, control plane, worker, graph servers."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

import penstock
from penstock.cli.demo import books, lake, rings, warehouse
from penstock.cli.home import Home
from penstock.cli.stack import Stack
from penstock.client.definitions import edge, node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from penstock.client._async.instances import AsyncGraph
    from penstock.client._async.mappings import AsyncMapping

ENDLESS = (
    "MATCH (a:Account), (b:Account), (c:Account) WHERE a.balance + b.balance > c.balance RETURN "
    "count(*)"
)
CITIES = node("City", "SELECT DISTINCT city AS name FROM people", "name", "STRING")


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-client-"))
    folder.chmod(0o755)  # as root the database runs under another account, which must get there
    yield Home(folder / "home")
    shutil.rmtree(folder, ignore_errors=True)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ps(home: Home) -> AsyncIterator[penstock.AsyncClient]:
    async with (
        Stack(home, port=0, workers=1) as stack,
        penstock.AsyncClient(stack.url, home.secret("operator_token")) as client,
    ):
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def source(ps: penstock.AsyncClient, home: Home) -> int:
    file = home.folder / "warehouse" / "demo.duckdb"
    warehouse.build(file)
    return (await ps.sources.create("bank", "duckdb", {"database": str(file)})).id


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bank(ps: penstock.AsyncClient, source: int) -> AsyncMapping:
    return await ps.mappings.create(
        "Bank", nodes=rings.NODES, edges=rings.EDGES, data_source=source
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def graph(bank: AsyncMapping) -> AsyncIterator[AsyncGraph]:
    async with await bank.start("live", ttl="1h", progress=False) as running:
        yield running


async def test_a_source_really_answers(ps: penstock.AsyncClient, source: int) -> None:
    assert (await ps.sources.test(source))["ok"] is True
    assert [row.id async for row in ps.sources.list()] == [source]


async def test_a_mapping_goes_through_its_versions(ps: penstock.AsyncClient, source: int) -> None:
    mapping = await ps.mappings.create("Places", nodes=[CITIES], data_source=source)
    near = edge("NEAR", ("City", "City"), "SELECT 'Wien' AS a, 'Paris' AS b", ("a", "b"))
    await mapping.update("cities have neighbors", edges=[near])
    assert mapping.info.current_version == 2
    assert (await mapping.diff(1, 2))["summary"]["edges_added"] == 1
    await mapping.restore(1)
    assert [version["version"] for version in await mapping.versions()] == [3, 2, 1]
    copied = await mapping.copy("Places again")
    assert copied.info.node_definitions == mapping.info.node_definitions
    assert (await mapping.tree())["totals"]["version_count"] == 3
    assert (await mapping.lifecycle(ttl="1d")).info.ttl == "P1D"
    for mapping_object in (copied, mapping):
        await mapping_object.delete()
    with pytest.raises(penstock.errors.NotFound):
        await mapping.refresh()


async def test_somebody_elses_change_in_between_is_a_conflict(
    ps: penstock.AsyncClient, source: int
) -> None:
    mine = await ps.mappings.create("Shared", nodes=[CITIES], data_source=source)
    theirs = await ps.mappings.get(mine.id)
    people = node("Person", "SELECT id FROM people", "id", "INT64")
    await theirs.update("people too", nodes=[CITIES, people])
    with pytest.raises(penstock.errors.Conflict):
        await mine.update("not knowing", nodes=[people])
    await mine.delete()


async def test_definitions_that_do_not_fit_are_refused_with_their_faults(
    ps: penstock.AsyncClient, source: int
) -> None:
    wrong = node("City", "SELECT citty AS name FROM people", "name", "STRING")
    with pytest.raises(penstock.errors.Invalid) as caught:
        await ps.mappings.create("Wrong", nodes=[wrong], data_source=source)
    assert "City" in str(caught.value.details) + caught.value.message


async def test_the_keys_of_the_warehouse_propose_a_mapping(
    ps: penstock.AsyncClient, source: int
) -> None:
    proposed = await ps.mappings.infer(data_source=source)
    labels = {node.label.lower() for node in proposed.nodes}
    assert any("people" in label or "person" in label for label in labels)


async def test_a_graph_answers_in_rows_and_in_arrow(graph: AsyncGraph) -> None:
    result = await graph.query(
        "MATCH (p:Person) WHERE p.id = $id RETURN p, p.name AS name", {"id": 1}
    )
    assert result.column_types == ("NODE", "STRING")
    assert result[0]["p"]["_id"] == "Person:1"
    table = await graph.arrow("MATCH (a:Account) RETURN a.id AS id")
    assert table.num_rows == 3000
    capped = await graph.query("MATCH (a:Account) RETURN a.id", max_rows=10)
    assert (len(capped), capped.truncated) == (10, True)


async def test_a_graph_knows_its_schema_state_and_neighbors(graph: AsyncGraph) -> None:
    assert (await graph.schema())["total_nodes"] == 6800
    assert (await graph.server_status())["ready"] is True
    assert (await graph.lock())["locked"] is False
    around = await graph.subgraph(["Person:1"], hops=1)
    assert any(element["_id"] == "Person:1" for element in around["nodes"])
    assert (await graph.refresh()).info.node_count == 6800
    assert [event["event_type"] async for event in graph.history()]
    assert [change.status async for change in graph.events()] == ["running"]


async def test_a_drawn_node_brings_its_neighbors_from_the_graph(graph: AsyncGraph) -> None:
    busiest = "MATCH (a:Account)-[t]-() WITH a, count(t) AS n ORDER BY n DESC LIMIT 1 RETURN a"
    view = (await graph.query(busiest)).view(expand_cap=3)
    (drawn,) = view.drawing.nodes
    for number in (4, 7):
        grown = asyncio.Event()
        view.observe(lambda _, rung=grown: rung.set(), "data")
        view.expand(drawn.id)
        await asyncio.wait_for(grown.wait(), 30)
        assert len(view.drawing.nodes) == number
    assert view.drawing.degree(drawn.id) == 6


async def test_an_algorithm_finds_the_rings(graph: AsyncGraph) -> None:
    done = await graph.algo.scc(node_label="Account", edge_type="SENT_MUCH", write="ring")
    assert (done.status, done.info.nodes_updated) == ("completed", 3000)
    result = await graph.query(rings.RINGS, {"least": 3})
    assert result.column("accounts") == [8, 6, 5]
    assert "scc" in {algorithm["name"] for algorithm in await graph.algo.catalogue()}
    assert (await graph.algo.describe("scc"))["name"] == "scc"
    assert any(execution["algorithm_name"] == "scc" for execution in await graph.algo.executions())


async def test_networkx_answers_by_name(graph: AsyncGraph) -> None:
    done = await graph.networkx.density(node_label="Account", edge_type="SENT_MUCH")
    assert done.status == "completed"


async def test_what_goes_wrong_has_its_own_exception(graph: AsyncGraph) -> None:
    with pytest.raises(penstock.errors.QueryError):
        await graph.query("MATCH (n RETURN n")
    with pytest.raises(penstock.errors.PermissionDenied):
        await graph.query("CREATE (:Person {id: 0})")
    with pytest.raises(penstock.errors.NotFound):
        await graph.algo.run("no_such_algorithm")
    with pytest.raises(penstock.errors.TimedOut):
        await graph.query(ENDLESS, timeout=0.2)


async def test_a_snapshot_is_made_waited_for_and_deleted(
    ps: penstock.AsyncClient, bank: AsyncMapping
) -> None:
    snapshot = await ps.snapshots.create(bank.id, "by hand")
    await snapshot.wait(timeout=60, progress=False)
    assert snapshot.info.node_counts == {"Person": 2000, "Account": 3000, "Device": 1800}
    assert (await snapshot.progress()).progress_percent == 100
    await snapshot.delete()


async def test_a_mapping_with_snapshots_is_not_deleted(
    bank: AsyncMapping, graph: AsyncGraph
) -> None:
    assert graph.status == "running"
    with pytest.raises(penstock.errors.DependencyExists):
        await bank.delete()


async def test_an_instance_that_was_terminated_is_gone(
    ps: penstock.AsyncClient, bank: AsyncMapping
) -> None:
    async with await bank.start("short", progress=False) as short:
        assert (await short.query("RETURN 1 AS one")).scalar() == 1
    with pytest.raises(penstock.errors.NotFound):
        await ps.instances.get(short.id)
    await short.terminate()


def _example() -> str:
    """The tour of the specification, word for word where the warehouse allows."""
    with penstock.connect() as ps:
        return _toured(ps)


def _toured(ps: penstock.Client) -> str:
    m = ps.mappings.create("Movies", nodes=rings.NODES, edges=rings.EDGES)
    with m.start(engine="ladybug", ttl="2h") as g:
        g.query("MATCH (a)-[r]->(b) RETURN a, r, b LIMIT 50").show()
        assert (
            g.query("MATCH (a)-[r]->(b) RETURN a, r, b LIMIT 50").to_networkx().number_of_edges()
            == 50
        )
        ranked = g.algo.pagerank(node_label="Person", write="rank")
        assert (ranked.wait().status, ranked.info.nodes_updated) == ("completed", 2000)
    run = ps.reconcile.run("invoices-vs-payments", month="2026-10")
    report = run.wait().report()
    done = ps.tables["lake.shop.events"].maintain(["compact", "expire_snapshots"]).wait()
    assert {action["action"] for action in done.actions()} == {
        "rewrite_data_files",
        "expire_snapshots",
    }
    return report


def _monthly(side: str, day: str) -> dict[str, object]:
    table = {"left": "invoices", "right": "payments"}[side]
    of_month = {"column": "month", "op": "eq", "value": {"parameter": "month"}}
    query = f"SELECT *, strftime({day}, '%Y-%m') AS month FROM {table}"
    return {
        "source": "bank",
        "query": query,
        "primary_key": [f"{table[:-1]}_no"],
        "filters": [of_month],
    }


async def test_the_tour_of_the_specification_runs(
    ps: penstock.AsyncClient,
    home: Home,
    source: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await ps.sources.make_default(source)
    sides = {"left": _monthly("left", "issued"), "right": _monthly("right", "paid")}
    month = {"month": {"type": "text"}}
    await ps.reconcile.save(books.RECIPE | {"sources": sides, "parameters": month})
    await asyncio.to_thread(lake.worn, ps.url, home.secret("operator_token"))
    for name in ("PENSTOCK_URL", "PENSTOCK_API_KEY", "PENSTOCK_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PENSTOCK_HOME", str(home.folder))
    report = await asyncio.to_thread(_example)
    assert "<svg" in report
    assert "50 rows" in capsys.readouterr().out


async def test_a_source_is_looked_at_before_a_recipe_names_it(
    ps: penstock.AsyncClient, source: int
) -> None:
    assert source in [row.id async for row in ps.sources.list()]
    assert "bank" in [row["alias"] async for row in ps.reconcile.sources.list()]
    first = await ps.reconcile.sources.preview("bank", "invoices", limit=3)
    assert len(first["rows"]) == 3
    condition = {"column": "invoice_no", "op": "eq", "value": first["rows"][0]["invoice_no"]}
    [record] = (
        await ps.reconcile.sources.load_scoped("bank", table="invoices", filters=[condition])
    )["rows"]
    assert record == first["rows"][0]


async def test_the_clock_makes_jobs_until_its_schedule_is_dropped(ps: penstock.AsyncClient) -> None:
    schedule = await ps.schedules.set(
        "nightly", "0 3 * * *", {"kind": "probe"}, zone="Europe/Vienna"
    )
    assert (schedule["zone"], schedule["enabled"]) == ("Europe/Vienna", True)
    assert [row["name"] async for row in ps.schedules.list()] == ["nightly"]
    assert (await ps.schedules.drop("nightly"))["name"] == "nightly"
    with pytest.raises(penstock.errors.NotFound):
        await ps.schedules.get("nightly")


async def test_a_job_tells_where_it_is_until_it_is_over(ps: penstock.AsyncClient) -> None:
    job = await ps.jobs.create("probe", {"steps": 2, "seconds_per_step": 0.2}, max_attempts=1)
    statuses = [change.status async for change in job.events()]
    assert statuses[-1] == "succeeded"
    assert (await job.wait(progress=False)).info.attempts


async def test_a_job_that_is_cancelled_says_so_to_whoever_waits(ps: penstock.AsyncClient) -> None:
    job = await ps.jobs.create("probe", {"steps": 1}, run_in=3600)
    await job.cancel("not today")
    with pytest.raises(penstock.errors.Failed, match="cancelled"):
        await job.wait(progress=False)
    assert (await job.retry()).id != job.id


async def test_the_server_tells_a_runs_changes_as_they_come(
    ps: penstock.AsyncClient, source: int
) -> None:
    sides = {"left": _plain("invoices"), "right": _plain("payments")}
    run = await ps.reconcile.run(books.RECIPE | {"recipe_id": None, "sources": sides})
    changes = [change async for change in run.events()]
    assert changes[-1].status == run.status == "completed"
    assert run.totals["left"]["rows"] == 5000
    assert [change async for change in run.events()] == []


def _plain(table: str) -> dict[str, object]:
    return {"source": "bank", "table": table, "primary_key": [f"{table[:-1]}_no"]}
