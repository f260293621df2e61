"""Algorithms that run: long ones, cancelled, killed, out of time or memory, side by side. The
server stays sound."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

import psutil
import pytest_asyncio

from penstock.graphdb.algorithms.catalog import CATALOG
from tests.graph_server.people import People, people

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import pytest

LONG: dict[str, Any] = {"parameters": {"max_iterations": 100_000, "tolerance": 0}}
WRITING = LONG | {"result_property": "rank"}
DEADLINE = 60


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def graph(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[People]:
    async with people(tmp_path_factory.mktemp("running"), patience=0.0, at_once=3) as people_graph:
        await people_graph.executions.warm()
        yield people_graph


async def until(holds: Callable[[], Any]) -> Any:
    async with asyncio.timeout(DEADLINE):
        while not (value := holds()):  # noqa: ASYNC110 - what another process does rings no bell here
            await asyncio.sleep(0.005)
    return value


async def started(
    graph: People, body: dict[str, Any], path: str = "/algo/pagerank"
) -> dict[str, Any]:
    answer = await graph.run(path, body)
    assert answer.status_code == 202, answer.text
    document: dict[str, Any] = answer.json()
    assert document["status"] == "running"
    return document


async def ended(graph: People, execution_id: str) -> dict[str, Any]:
    async with asyncio.timeout(DEADLINE):
        await graph.executions.get(execution_id).ended.wait()
    document: dict[str, Any] = (await graph.client.get(f"/algo/status/{execution_id}")).json()
    return document


async def sound(graph: People) -> None:
    """The lock is free, no child is left, and the next algorithm writes."""
    assert graph.lock.holding is None
    assert not graph.executions.child_pids
    after = await graph.run("/algo/degree", {"node_label": "City", "result_property": "after"})
    assert (await ended(graph, after.json()["execution_id"]))["nodes_updated"] == 3


async def test_a_long_one_runs_on_with_progress_and_completes(graph: People) -> None:
    begun = await started(graph, WRITING)
    execution = graph.executions.get(begun["execution_id"])
    await until(lambda: 0 < execution.progress < 1)
    done = await ended(graph, execution.id)
    assert (done["status"], done["nodes_updated"], done["progress_percent"]) == (
        "completed",
        8,
        100,
    )
    assert done["result"]["iterations"] == 100_000
    assert done["duration_ms"] > 0


async def test_a_second_writer_is_refused_by_name_while_readers_run(graph: People) -> None:
    begun = await started(graph, WRITING)
    second = await graph.run("/algo/wcc", {"result_property": "c"}, **{"X-Penstock-User": "bob"})
    error = second.json()["error"]
    assert (second.status_code, error["code"]) == (409, "RESOURCE_LOCKED")
    assert (error["details"]["holder_name"], error["details"]["algorithm"]) == ("ada", "pagerank")
    reader = await started(graph, {}, "/algo/wcc")
    assert (await ended(graph, reader["execution_id"]))["status"] == "completed"
    assert await graph.values("City", "id") == {1: 1, 2: 2, 3: 3}
    holder = graph.lock.holding
    assert holder is not None
    assert holder.execution_id == begun["execution_id"]
    await graph.client.delete(f"/algo/executions/{begun['execution_id']}")
    await sound(graph)


async def test_a_cancel_ends_the_process(graph: People) -> None:
    begun = await started(graph, WRITING)
    pid = next(iter(await until(lambda: graph.executions.child_pids)))
    answer = await graph.client.delete(f"/algo/executions/{begun['execution_id']}")
    assert answer.json()["status"] == "cancelled"
    assert not psutil.pid_exists(pid)
    await sound(graph)


async def test_a_cancel_while_the_graph_is_read_is_heard_and_the_next_one_reads_it_anew(
    graph: People,
) -> None:
    asked = {"relationship_types": ["LIVES_IN"], "result_property": "near"}
    [engine] = graph.engine.supervisor.pids
    os.kill(engine, signal.SIGSTOP)
    try:
        begun = await started(graph, asked, "/algo/wcc")
        await until(lambda: graph.engine.supervisor.current.running)
        answer = await graph.client.delete(f"/algo/executions/{begun['execution_id']}")
        assert answer.json()["status"] == "cancelled"
    finally:
        os.kill(engine, signal.SIGCONT)
    again = await started(graph, asked, "/algo/wcc")
    assert (await ended(graph, again["execution_id"]))["result"]["components"] == 3
    await sound(graph)


async def test_a_stranger_cannot_cancel(graph: People) -> None:
    begun = await started(graph, LONG)
    path = f"/algo/executions/{begun['execution_id']}"
    stranger = {"X-Penstock-User": "eve", "X-Penstock-Write": "0"}
    assert (await graph.client.delete(path, headers=stranger)).status_code == 403
    assert (await graph.client.delete(path, headers={"X-Penstock-Write": "0"})).json()[
        "status"
    ] == "cancelled"


async def test_a_killed_child_leaves_lock_and_server_sound(graph: People) -> None:
    begun = await started(graph, WRITING)
    pid = next(iter(await until(lambda: graph.executions.child_pids)))
    os.kill(pid, signal.SIGKILL)
    failed = await ended(graph, begun["execution_id"])
    assert (failed["status"], failed["error_code"]) == ("failed", "ALGORITHM_FAILED")
    assert "killed" in failed["error_message"]
    await sound(graph)


async def test_when_the_process_that_forks_is_killed_another_takes_its_place(graph: People) -> None:
    begun = await started(graph, WRITING)
    child = psutil.Process(next(iter(await until(lambda: graph.executions.child_pids))))
    os.kill(child.ppid(), signal.SIGKILL)
    assert (await ended(graph, begun["execution_id"]))["status"] == "failed"
    await until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    await sound(graph)


async def test_one_that_is_out_of_time_is_stopped(graph: People, tmp_path: Path) -> None:
    begun = await started(graph, WRITING | {"timeout_ms": 200})
    failed = await ended(graph, begun["execution_id"])
    assert (failed["status"], failed["error_code"]) == ("failed", "ALGORITHM_TIMEOUT")
    await sound(graph)
    async with people(tmp_path) as patient:
        answer = await patient.run("/algo/pagerank", WRITING | {"timeout_ms": 1})
        assert (answer.status_code, answer.json()["error"]["code"]) == (408, "ALGORITHM_TIMEOUT")


async def test_one_that_is_out_of_memory_fails_alone(tmp_path: Path) -> None:
    asked = {"node_label": "Person", "result_property": "v", "parameters": {"dimensions": 2048}}
    async with people(tmp_path, memory_bytes=256 * 2**20, crowd=50_000) as small:
        answer = await small.run("/algo/fastrp", asked)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (507, "ALGORITHM_OUT_OF_MEMORY")
        assert "256 MiB" in error["message"]
        assert small.lock.holding is None
        assert await small.values("City", "id") == {1: 1, 2: 2, 3: 3}


async def test_no_allocator_takes_the_allowance_ahead(graph: People) -> None:
    """Arrow's default pool maps a gibibyte at its first array, and a limit of 1 GiB was used up by
    that alone."""
    await graph.run("/algo/degree", {"node_label": "City", "result_property": "degree"})
    assert graph.executions.pids
    for pid in graph.executions.pids:
        assert psutil.Process(pid).environ()["ARROW_DEFAULT_MEMORY_POOL"] == "system"


async def test_every_algorithm_computes_a_small_graph_in_64_mebibytes(tmp_path: Path) -> None:
    """Whatever its libraries allocate ahead (pools, arenas, threads) is less than that."""
    samples = {"node": "Person:1", "nodes": ["Person:1"]}
    async with people(tmp_path, memory_bytes=64 * 2**20) as small:
        for algorithm in CATALOG.values():
            required = {p.name: samples[p.type] for p in algorithm.parameters if p.required}
            body: dict[str, Any] = {"parameters": required}
            if algorithm.per_node:
                body |= {"node_label": "Person", "result_property": "v"}
            answer = await small.run(f"/algo/{algorithm.name}", body)
            assert answer.status_code == 200, (algorithm.name, answer.text)
        assert (await small.run("/networkx/triadic_census")).status_code == 200


async def test_no_more_run_at_once_than_allowed(tmp_path: Path) -> None:
    async with people(tmp_path, patience=0.0, at_once=3, crowd=50_000) as busy:
        begun = [await started(busy, LONG) for _ in range(3)]
        refused = await busy.run("/algo/wcc")
        assert (refused.status_code, refused.json()["error"]["details"]["limit"]) == (503, 3)
        for one in begun:
            await busy.client.delete(f"/algo/executions/{one['execution_id']}")
        again = await started(busy, {}, "/algo/wcc")
        assert (await ended(busy, again["execution_id"]))["status"] == "completed"


async def test_the_loop_answers_at_once_while_an_algorithm_runs(graph: People) -> None:
    begun = await started(graph, LONG)
    loop = asyncio.get_running_loop()
    times = []
    for _ in range(20):
        asked = loop.time()
        assert (await graph.client.get("/algo/executions")).status_code == 200
        times.append(loop.time() - asked)
    assert sorted(times)[10] < 0.05
    await graph.client.delete(f"/algo/executions/{begun['execution_id']}")
