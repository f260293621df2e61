"""Hostile queries on every engine: what one may take, when it is ended, and that nobody else is
harmed."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pytest
import pytest_asyncio

from penstock.kit.memory import held_bytes
from penstock.storage.object_store import open_store
from tests.graph_server.control_plane import DEADLINE
from tests.graph_server.server import ARROW, GraphServer, running_server
from tests.graph_server.snapshots import Edge, Node, publish
from tests.graph_server.test_algorithms_served import done
from tests.graph_server.test_queries import until_active

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BACKENDS = ("ladybug", "ryugraph", "falkordb")
MIB = 1024**2
QUERY_MEMORY = 160 * MIB
COUNT = 2000
PERSON = Node(
    label="Person",
    key=("id", "INT64"),
    properties=(("name", "STRING"),),
    table=pa.table({"id": pa.array(range(COUNT)), "name": [f"n{i}" for i in range(COUNT)]}),
)
KNOWS = Edge(
    type="KNOWS",
    ends=("Person", "Person"),
    table=pa.table(
        {
            "a": pa.array([i % COUNT for i in range(5 * COUNT)]),
            "b": pa.array([i * 7 % COUNT for i in range(5 * COUNT)]),
        }
    ),
)
SUM = [[COUNT * (COUNT - 1) // 2]]
SMALL = "MATCH (p:Person) RETURN sum(p.id)"

# A hundred thousand numbers fit into the memory of queries of every engine, a thousand million into
# none.
FITS = "UNWIND range(1, 100000) AS x RETURN count(x)"
HOGS = {
    "range": "UNWIND range(1, 1000000000) AS x RETURN count(x)",
    "constant": "RETURN size(range(1, 1000000000))",
    "computed": "MATCH (p:Person {id: 1}) WITH p.id * 900000000 AS n RETURN size(range(1, n))",
    "collect": (
        "MATCH (a:Person), (b:Person), (c:Person) WITH collect(a.name + b.name + c.name) AS l "
        "RETURN size(l)"
    ),
    "product": (
        "MATCH (a:Person), (b:Person), (c:Person) WITH DISTINCT a.name + b.name + c.name AS s "
        "RETURN count(s)"
    ),
    "sort": "MATCH (a:Person), (b:Person), (c:Person) WITH a.name + b.name + c.name AS s ORDER BY "
    "s "
    "SKIP 90000000"
    " RETURN s LIMIT 1",
    "result": "MATCH (a:Person), (b:Person) RETURN a.name + b.name + '"
    + "x" * 3000
    + "' AS s LIMIT 100000",
}
EMBEDDED_HOGS = HOGS | {
    "string": "RETURN size(repeat('x', 1000000000))",
    "strings": "UNWIND range(1, 1000) AS x RETURN x, repeat('x', 1000000) AS s",
    "sum": "WITH repeat('x', 100000000) AS s RETURN s + s + s + s + s + s + s + s",
    "lists": "UNWIND range(1, 100000) AS x RETURN range(1, x)",
}
# What no engine hears a timeout in: one call of one function.
DEAF = {
    "ladybug": "WITH repeat('ab', 2000000) AS s RETURN levenshtein(s, s)",
    "ryugraph": "WITH repeat('ab', 2000000) AS s RETURN levenshtein(s, s)",
    "falkordb": (
        "WITH range(1, 100000) AS l RETURN size([x IN l WHERE size([y IN l WHERE y = x]) > 2])"
    ),
}
SLOW = (
    "MATCH (a:Person), (b:Person) WHERE a.id * b.id % 7 = 3 WITH a, b MATCH (c:Person) WHERE c.id "
    "< 9 RETURN count(*)"
)


def hogs(backend: str) -> dict[str, str]:
    return HOGS if backend == "falkordb" else EMBEDDED_HOGS


@asynccontextmanager
async def abused(backend: str, **settings: str) -> AsyncIterator[GraphServer]:
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        root = Path(folder) / "storage"
        root.mkdir()
        published = await publish(open_store(str(root)), [PERSON], [KNOWS], prefix="ada/5/v3/42/")
        own = {
            "instance_backend": backend,
            "instance_memory_bytes": str(512 * MIB),
            "instance_query_memory_bytes": str(QUERY_MEMORY),
        }
        async with running_server(
            Path(folder) / "i", f"file://{root}", published, **(own | settings)
        ) as server:
            yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=BACKENDS)
async def backend_and_server(
    request: pytest.FixtureRequest,
) -> AsyncIterator[tuple[str, GraphServer]]:
    async with abused(request.param) as server:
        yield request.param, server


def error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def sound(server: GraphServer) -> None:
    """The same graph server, the same graph."""
    assert server.process.poll() is None, server.log.read_text()[-3000:]
    assert await server.rows(SMALL) == SUM
    assert await server.rows("MATCH (:Person)-[e:KNOWS]->(:Person) RETURN count(e)") == [
        [5 * COUNT]
    ]
    assert await server.rows("MATCH (p:Person {id: 7}) RETURN p.name") == [["n7"]]


async def ended(pids: list[int]) -> None:
    async with asyncio.timeout(DEADLINE):
        while any(psutil.pid_exists(pid) for pid in pids):  # noqa: ASYNC110 - another's child rings no bell
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("backend_and_server", "name"),
    [(backend, name) for backend in BACKENDS for name in hogs(backend)],
    indirect=["backend_and_server"],
)
async def test_a_query_over_its_memory_limit_is_refused_and_others_go_on(
    backend_and_server: tuple[str, GraphServer], name: str
) -> None:
    backend, server = backend_and_server
    answer = await server.query(hogs(backend)[name], timeout_ms=50_000)
    assert error(answer) == (507, "QUERY_OUT_OF_MEMORY"), answer.text
    assert "MiB" in answer.json()["error"]["message"]
    assert "memory" in answer.json()["error"]["details"]["hint"]
    await sound(server)


async def test_what_fits_into_the_limit_is_answered_before_and_after_what_does_not(
    backend_and_server: tuple[str, GraphServer],
) -> None:
    _, server = backend_and_server
    for _ in range(3):
        assert await server.rows(FITS) == [[100_000]]
        assert error(await server.query(HOGS["constant"])) == (507, "QUERY_OUT_OF_MEMORY")
    assert await server.rows(FITS) == [[100_000]]


async def test_a_stream_that_takes_too_much_memory_is_refused_before_its_first_byte(
    backend_and_server: tuple[str, GraphServer],
) -> None:
    _, server = backend_and_server
    body = {"query": HOGS["result"].replace("LIMIT 100000", "")}
    answer = await server.http.post("/query", json=body, headers={"Accept": ARROW})
    assert error(answer) == (507, "QUERY_OUT_OF_MEMORY")
    await sound(server)


async def test_other_readers_get_right_answers_or_clear_refusals_beside_hostile_ones(
    backend_and_server: tuple[str, GraphServer],
) -> None:
    backend, server = backend_and_server
    over = asyncio.Event()
    answers: list[Any] = []

    async def read() -> None:
        while not over.is_set():
            answers.append(await server.query(SMALL))

    readers = [asyncio.create_task(read()) for _ in range(4)]
    hostile = [hogs(backend)[name] for name in ("range", "computed", "result")]
    refused = await asyncio.gather(*(server.query(text, timeout_ms=50_000) for text in hostile))
    over.set()
    await asyncio.gather(*readers)
    assert {answer.status_code for answer in refused} <= {507, 503}
    served = [answer for answer in answers if answer.status_code == 200]
    assert served
    assert all(answer.json()["rows"] == SUM for answer in served)
    lost = [error(answer) for answer in answers if answer.status_code != 200]
    assert set(lost) <= {(503, "GRAPH_ENGINE_RESTARTED")}
    assert len(lost) < len(served)
    await sound(server)


async def test_a_small_query_is_never_refused_for_memory_that_new_hostile_ones_keep_taking(
    backend_and_server: tuple[str, GraphServer],
) -> None:
    """Each time it is run again, another hostile query may have come beside it."""
    _, server = backend_and_server
    over = asyncio.Event()
    answers: list[Any] = []

    async def read() -> None:
        while not over.is_set():
            answers.append(await server.query(SMALL, timeout_ms=50_000))

    async def abuse() -> list[tuple[int, str]]:
        return [error(await server.query(HOGS["range"], timeout_ms=50_000)) for _ in range(5)]

    readers = [asyncio.create_task(read()) for _ in range(2)]
    refused = await asyncio.gather(abuse(), abuse())
    over.set()
    await asyncio.gather(*readers)
    assert {code for codes in refused for code in codes} <= {
        (507, "QUERY_OUT_OF_MEMORY"),
        (503, "GRAPH_ENGINE_RESTARTED"),
    }
    assert any(answer.status_code == 200 for answer in answers)
    assert all(answer.json()["rows"] == SUM for answer in answers if answer.status_code == 200)
    lost = {error(answer) for answer in answers if answer.status_code != 200}
    assert lost <= {(503, "GRAPH_ENGINE_RESTARTED")}
    await sound(server)


# As JSON, for not all of it can be written by a client that only means well.
ODD_VALUES = {
    "nan": "NaN",
    "infinite": "-1e400",
    "beyond 64 bits": "9223372036854775808",
    "huge": "1" + "0" * 400,
    "half a character": '"\\ud800"',
    "half a character in a map": '{"\\ud800": [1]}',
    "zero byte": '"a\\u0000b"',
    "nested": "[" * 300 + "]" * 300,
    "mixed": '[1, "a", [2], {"a": null}, null]',
    "nulls": "[null, null]",
    "large": '"' + "x" * 3_000_000 + '"',
    "quoted": '"it\'s `x` \\\\ \\" $p // /*"',
}
REFUSED = {"beyond 64 bits", "huge", "half a character", "half a character in a map", "nested"}


@pytest.mark.parametrize("name", ODD_VALUES)
async def test_an_odd_parameter_is_answered_or_refused_and_never_an_internal_error(
    backend_and_server: tuple[str, GraphServer], name: str
) -> None:
    _, server = backend_and_server
    body = f'{{"query": "RETURN $p AS x", "parameters": {{"p": {ODD_VALUES[name]}}}}}'
    headers = {"Content-Type": "application/json"}
    answer = await server.http.post("/query", content=body.encode(), headers=headers)
    assert answer.status_code in (200, 400, 422), answer.text[:500]
    assert answer.status_code != 200 or name not in REFUSED
    if answer.status_code == 400:
        assert error(answer) == (400, "RYUGRAPH_ERROR")
    if name == "quoted":
        assert answer.json()["rows"] == [["it's `x` \\ \" $p // /*"]]
    await sound(server)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_query_that_ignores_its_timeout_is_ended_with_its_process_and_the_others_run_again(
    backend: str,
) -> None:
    async with abused(backend) as server:
        expected = await server.rows(SLOW, timeout_ms=50_000)
        before = (await server.engine())["pids"]
        slow = asyncio.create_task(server.query(SLOW, timeout_ms=50_000))
        answer = await server.query(DEAF[backend], timeout_ms=300)
        assert error(answer) == (408, "QUERY_TIMEOUT")
        await ended(before)
        others = await slow
        assert (others.status_code, others.json().get("rows")) == (200, expected), others.text
        assert (await server.engine())["restarts"] == {"overdue": 1}
        assert (await server.engine())["pids"] != before
        await until_active(server, 0)
        await sound(server)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_what_algorithms_wrote_is_there_after_the_engine_died(backend: str) -> None:
    async with abused(backend) as server:
        for body in (
            {"result_property": "deg"},
            {"result_property": "more"},
            {"result_property": "deg"},
        ):
            assert (await done(server, "/algo/degree", body))["nodes_updated"] == COUNT
        ask = "MATCH (p:Person) RETURN sum(p.deg), min(p.more), count(*)"
        before = await server.rows(ask)
        for pid in (await server.engine())["pids"]:
            os.kill(pid, signal.SIGKILL)
        assert await server.rows(ask) == before
        tables = (await server.http.get("/schema")).json()["node_tables"]
        assert {"deg", "more"} <= tables[0]["properties"].keys()
        again = await done(server, "/algo/degree", {"result_property": "deg"})
        assert again["nodes_updated"] == COUNT
        await sound(server)


async def test_queries_that_were_running_when_the_engine_died_are_run_again() -> None:
    async with abused("ladybug") as server:
        expected = await server.rows(SLOW, timeout_ms=50_000)
        [engine] = (await server.engine())["pids"]
        os.kill(engine, signal.SIGSTOP)
        running = [asyncio.create_task(server.query(SLOW, timeout_ms=50_000)) for _ in range(3)]
        await until_active(server, 3)
        os.kill(engine, signal.SIGKILL)
        answers = await asyncio.gather(*running)
        assert [(a.status_code, a.json().get("rows")) for a in answers] == [(200, expected)] * 3
        assert (await server.engine())["restarts"] == {"crash": 1}


async def test_a_query_that_crashes_the_engine_is_tried_once_more_by_itself_and_then_told_so() -> (
    None
):
    async with abused("ladybug") as server:
        running = asyncio.create_task(server.query(DEAF["ladybug"], timeout_ms=50_000))
        for crashes in (0, 1):
            engine = await computing(server, crashes)
            os.kill(engine, signal.SIGSEGV)
        answer = await running
        assert error(answer) == (500, "GRAPH_ENGINE_CRASHED")
        assert "SIGSEGV" in answer.json()["error"]["message"]
        assert (await server.engine())["restarts"] == {"crash": 2}
        await sound(server)


async def computing(server: GraphServer, restarts: int) -> int:
    """The pid of the engine, when it was restarted so often and is at work on a query."""
    used: dict[int, float] = {}
    async with asyncio.timeout(DEADLINE):
        while True:
            engine = await server.engine()
            pid = int(engine["pids"][0])
            if sum(engine["restarts"].values()) == restarts:
                with suppress(psutil.NoSuchProcess):
                    now = sum(psutil.Process(pid).cpu_times()[:2])
                    if now - used.setdefault(pid, now) > 0.2:
                        return pid


async def test_a_client_disconnect_does_not_kill_an_uninterruptible_falkordb() -> None:
    triples = (
        "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 3000) AS c WITH a, "
        "b, c"
    )
    async with abused("falkordb", instance_kill_seconds="0.2") as server:
        asking = asyncio.create_task(
            server.query(f"{triples} WHERE a * b + c < 0 RETURN count(*)", timeout_ms=2000)
        )
        await until_active(server, 1)
        asking.cancel()
        await until_active(server, 0)
        assert (await server.engine())["restarts"] == {}
        await sound(server)


async def test_all_processes_together_stay_below_the_instances_memory() -> None:
    """The limit of queries is out of the way: what remains is that of the instance."""
    settings = {
        "instance_query_memory_bytes": str(64 * 1024 * MIB),
        "instance_memory_bytes": str(1024 * MIB),
    }
    async with abused("ladybug", **settings) as server:
        reading = asyncio.create_task(
            server.query("UNWIND range(1, 400000000) AS x RETURN count(x)")
        )
        most = 0
        while not reading.done():
            most = max(most, sum(map(held_bytes, (await server.engine())["pids"])))
        answer = await reading
        assert error(answer) == (507, "QUERY_OUT_OF_MEMORY"), answer.text
        assert most < 1024 * MIB
        assert (await server.engine())["restarts"] == {"memory": 1}
        await sound(server)


async def test_an_engine_that_cannot_be_started_again_fails_the_instance_with_its_cause() -> None:
    async with abused("ladybug") as server:
        database = server.folder / "own/engine/graph.db"
        database.write_bytes(b"not a database")
        [engine] = (await server.engine())["pids"]
        os.kill(engine, signal.SIGKILL)
        outcome = await server.plane.heard("status", lambda body: body["status"] == "failed")
        assert outcome["error_code"] == "DATABASE_ERROR"
        assert "could not be started again" in outcome["error_message"]
        assert await server.exit_code() == 1
