"""`POST /query`: what comes back, what is stopped, what is refused."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from typing import TYPE_CHECKING

import httpx2
import pyarrow as pa
import pytest

from penstock.kit.statement_digest import statement_digest
from penstock.storage.object_store import open_store
from tests.graph_server.conftest import BIG, CITY
from tests.graph_server.server import ARROW, PROXY, running_server
from tests.graph_server.snapshots import publish

if TYPE_CHECKING:
    from pathlib import Path

    from tests.graph_server.server import GraphServer

ENDLESS = (
    "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a, b WHERE a * b % 7 = 9 "
    "RETURN count(*)"
)


async def active(server: GraphServer) -> int:
    text = (await server.http.get("/metrics")).text
    return int(text.split("penstock_instance_active_queries ")[-1].split()[0])


async def until_active(server: GraphServer, count: int) -> None:
    """Each look is a request, so the other tasks have their turns."""
    async with asyncio.timeout(10):
        while await active(server) != count:
            pass


async def test_an_answer_names_its_columns_types_and_time(server: GraphServer) -> None:
    answer = (
        await server.query("MATCH (n:Person {id: 1}) RETURN n.id, n.name AS name, n.born, n.tags")
    ).json()
    assert answer["columns"] == ["n.id", "name", "n.born", "n.tags"]
    assert answer["column_types"] == ["INT64", "STRING", "DATE", "LIST<STRING>"]
    assert answer["rows"] == [[1, "Ada", "1815-12-10", ["a", None]]]
    assert (answer["row_count"], answer["truncated"]) == (1, False)
    assert isinstance(answer["execution_time_ms"], int)


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("9223372036854775807", "INT64", 9223372036854775807),
        ("1.5", "DOUBLE", 1.5),
        ("true", "BOOL", True),
        ("'Zoë 🐞'", "STRING", "Zoë 🐞"),
        ("date('2026-02-03')", "DATE", "2026-02-03"),
        ("timestamp('2026-02-03 04:05:06')", "TIMESTAMP", "2026-02-03T04:05:06Z"),
        (
            "cast('2026-02-03 04:05:06.123456789' AS TIMESTAMP_NS)",
            "TIMESTAMP",
            "2026-02-03T04:05:06.123456Z",
        ),
        ("cast(2.5 AS DECIMAL(5, 2))", "ANY", "2.50"),
        ("interval('3 days 2 hours')", "INTERVAL", "P3DT7200S"),
        (
            "uuid('47183823-2574-4bfd-b411-99ed177d3e43')",
            "UUID",
            "47183823-2574-4bfd-b411-99ed177d3e43",
        ),
        ("encode('hi')", "BLOB", "aGk="),
        ("[[1], []]", "LIST<LIST<INT64>>", [[1], []]),
        ("map(['k'], [1])", "MAP", {"k": 1}),
        ("{a: 1, b: [null, 'x']}", "STRUCT", {"a": 1, "b": [None, "x"]}),
        ("to_int8(7)", "INT64", 7),
        ("to_int128(7)", "INT64", 7),
        ("to_int128(9223372036854775807) + 1", "INT64", "9223372036854775808"),
        ("null", "STRING", None),
    ],
)
async def test_every_type_has_one_form_in_json(
    server: GraphServer, expression: str, kind: str, value: object
) -> None:
    answer = (await server.query(f"RETURN {expression} AS v")).json()
    assert (answer["column_types"], answer["rows"]) == ([kind], [[value]])


async def test_a_path_is_its_nodes_and_edges(server: GraphServer) -> None:
    answer = (
        await server.query("MATCH p = (a:Person {id: 1})-[:KNOWS*2..2]->(b) RETURN p, nodes(p)")
    ).json()
    assert answer["column_types"] == ["PATH", "LIST<NODE>"]
    [[path, nodes]] = answer["rows"]
    assert [n["_id"] for n in path["_nodes"]] == ["Person:1", "Person:2", f"Person:{BIG}"]
    assert [(e["_src"], e["_dst"], e["weight"]) for e in path["_rels"]] == [
        ("Person:1", "Person:2", 0.5),
        ("Person:2", f"Person:{BIG}", 2.0),
    ]
    assert nodes == path["_nodes"]


async def test_what_an_optional_match_does_not_find_is_null(server: GraphServer) -> None:
    assert await server.rows("OPTIONAL MATCH (n:Person {id: 99})-[e]->(m) RETURN n, e, m") == [
        [None, None, None]
    ]


async def test_an_empty_answer_has_its_columns(server: GraphServer) -> None:
    answer = (await server.query("MATCH (n:Person {id: 99}) RETURN n, n.name")).json()
    assert (answer["columns"], answer["rows"], answer["row_count"]) == (["n", "n.name"], [], 0)


@pytest.mark.parametrize(
    ("asked", "row_count", "truncated"), [(9, 9, True), (10, 10, False), (11, 10, False)]
)
async def test_a_row_cap_says_that_there_was_more(
    server: GraphServer, asked: int, row_count: int, *, truncated: bool
) -> None:
    for text in ("UNWIND range(1, 10) AS x RETURN x", "UNWIND range(1, 10) AS x RETURN x LIMIT 10"):
        answer = (await server.query(text, max_rows=asked)).json()
        assert (answer["row_count"], answer["truncated"]) == (row_count, truncated)


async def test_ten_million_rows_are_cut_at_the_cap_without_being_made(server: GraphServer) -> None:
    answer = (
        await server.query("UNWIND range(1, 10000000) AS x RETURN x", max_rows=1_000_000)
    ).json()
    assert (answer["row_count"], answer["truncated"]) == (100_000, True)


async def test_arrow_has_no_cap(server: GraphServer) -> None:
    query = {"query": "UNWIND range(1, 300000) AS x RETURN x, 'a' AS s", "max_rows": 5}
    answer = await server.http.post("/query", json=query, headers={"Accept": ARROW})
    assert answer.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(answer.content).read_all()
    assert (table.num_rows, table.column_names) == (300_000, ["x", "s"])


async def test_arrow_of_nodes_and_of_nothing_can_be_read(server: GraphServer) -> None:
    for text, rows in (
        ("MATCH (n)-[e]->(m) RETURN n, e", 4),
        ("MATCH (n:Person) WHERE n.id < 0 RETURN n", 0),
    ):
        answer = await server.http.post("/query", json={"query": text}, headers={"Accept": ARROW})
        table = pa.ipc.open_stream(answer.content).read_all()
        assert table.num_rows == rows
        assert table.schema.field("n").type.field("_id").type == pa.string()


@pytest.mark.parametrize("headers", [{}, {"Accept": ARROW}], ids=["json", "arrow"])
async def test_an_answer_that_cannot_be_told_is_an_error_and_not_a_broken_one(
    server: GraphServer, headers: dict[str, str]
) -> None:
    deep = "RETURN " + "[" * 48 + "1" + "]" * 48
    mixed: dict[str, object] = {
        "query": "RETURN $p AS p",
        "parameters": {"p": {"a": [1, {"b": None}]}},
    }
    for body in ({"query": deep}, {"query": "RETURN to_json([1]) AS p"}, mixed):
        answer = await server.http.post("/query", json=body, headers=headers)
        assert answer.status_code in (200, 400), answer.text
    assert (await server.http.post("/query", json=mixed, headers=headers)).status_code == 400


async def test_a_timeout_stops_the_engine_and_frees_its_thread(server: GraphServer) -> None:
    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(server.query(ENDLESS, timeout_ms=300) for _ in range(3)))
    assert [(a.status_code, a.json()["error"]["code"]) for a in answers] == [
        (408, "QUERY_TIMEOUT")
    ] * 3
    assert await active(server) == 0


async def test_a_pattern_that_would_be_planned_for_minutes_is_refused_and_a_product_is_stopped(
    server: GraphServer,
) -> None:
    star = "MATCH " + ", ".join(f"(c)--(v{n})" for n in range(24)) + " RETURN count(*)"
    answer = await server.query(star)
    assert (answer.status_code, "WITH" in answer.json()["error"]["details"]["hint"]) == (400, True)
    names = [f"v{n}" for n in range(16)]
    product = (
        f"MATCH {', '.join(f'({n})' for n in names)} WHERE "
        f"{' + '.join(f'size(label({n}))' for n in names)} < 0"
    )
    assert (await server.query(f"{product} RETURN v0", timeout_ms=300)).status_code == 408


async def test_a_client_that_hangs_up_stops_its_query(server: GraphServer) -> None:
    asking = asyncio.create_task(server.query(ENDLESS))
    await until_active(server, 1)
    asking.cancel()
    await until_active(server, 0)


async def test_a_client_that_leaves_a_stream_leaves_nothing_behind(server: GraphServer) -> None:
    body = {"query": "UNWIND range(1, 2000000) AS x RETURN x"}
    async with server.http.stream("POST", "/query", json=body, headers={"Accept": ARROW}) as answer:
        await anext(answer.aiter_raw())
    await until_active(server, 0)
    assert await server.rows("RETURN 1") == [[1]]


async def test_a_small_server_refuses_what_does_not_fit_and_lets_nobody_wait_too_long(
    short_folder: Path,
) -> None:
    root = short_folder / "storage"
    root.mkdir()
    mapping = await publish(open_store(str(root)), [CITY], [], prefix="a/1/")
    settings = {"instance_memory_bytes": str(256 * 1024**2), "instance_queries": "1"}
    async with running_server(short_folder / "i", f"file://{root}", mapping, **settings) as small:
        huge = (
            "UNWIND range(1, 1000000) AS x RETURN x, repeat('x', 300) + CAST(x AS STRING) AS s "
            "LIMIT 1000000"
        )
        answer = await small.query(huge)
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "QUERY_OUT_OF_MEMORY")
        assert "memory" in answer.json()["error"]["details"]["hint"]
        busy = [asyncio.create_task(small.query(ENDLESS, timeout_ms=2500)) for _ in range(3)]
        await until_active(small, 3)
        async with asyncio.timeout(60):
            assert (await small.query("RETURN 1", timeout_ms=200)).status_code == 408
        codes = {answer.json()["error"]["code"] for answer in await asyncio.gather(*busy)}
        # The third when its time was up while an engine was replaced that had no memory left.
        assert codes <= {"QUERY_TIMEOUT", "QUERY_OUT_OF_MEMORY", "GRAPH_ENGINE_RESTARTED"}
        assert await small.rows("MATCH (n:City) RETURN count(*)") == [[2]]


ROWS = (
    "UNWIND range(1, 100000) AS x RETURN x, 'abcdefghij' AS s, {a: x, b: 'hello', c: [1, 2]} AS "
    "t, x * 1.5 AS d"
)
NODES = "MATCH (n), (m) UNWIND range(1, 4000) AS x RETURN n, m"
COLUMNS = "UNWIND range(1, 3000000) AS x RETURN x, 'a' AS s LIMIT 3000000"


@pytest.mark.parametrize(
    "texts", [[ENDLESS, ENDLESS, COLUMNS], [ROWS] * 8, [NODES] * 2], ids=["long", "rows", "nodes"]
)
async def test_health_is_answered_all_the_time_while_queries_run(
    server: GraphServer, texts: list[str]
) -> None:
    # From a process of its own, for this one is busy with reading answers.
    command = (sys.executable, "-m", "tests.graph_server.probe", str(server.folder / "s"))
    probe = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    answers = await asyncio.gather(*(server.query(text, timeout_ms=2500) for text in texts))
    times, _ = await probe.communicate(b"enough")
    assert {answer.status_code for answer in answers} <= {200, 408}
    took = sorted(json.loads(times))
    # An event loop that is held until a query ends answers a few times in all of the queries' time.
    assert len(took) > 10
    assert took[len(took) // 2] < sum(took) / 10


async def test_readers_do_not_wait_for_each_other(server: GraphServer) -> None:
    texts = [f"UNWIND range(1, 1000) AS x RETURN sum(x) + {n}" for n in range(40)]
    assert [(await a)[0][0] for a in [asyncio.ensure_future(server.rows(t)) for t in texts]] == [
        500500 + n for n in range(40)
    ]


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("CREATE (:City {name: 'x'})", 403, "PERMISSION_DENIED"),
        ("MATCH (n) SET n.name = 'x'", 403, "PERMISSION_DENIED"),
        ("LOAD FROM '/etc/passwd' RETURN *", 403, "PERMISSION_DENIED"),
        ("COPY Person TO '/tmp/x.csv'", 403, "PERMISSION_DENIED"),
        ("CALL threads = 1", 403, "PERMISSION_DENIED"),
        ("RETURN 1; RETURN 2", 403, "PERMISSION_DENIED"),
        ("MATCH (n:Nobody) RETURN n", 400, "RYUGRAPH_ERROR"),
        ("MATCH (n) RETRUN n", 403, "PERMISSION_DENIED"),
        ("RETURN 'open", 400, "RYUGRAPH_ERROR"),
        ("RETURN 1 / 0", 400, "RYUGRAPH_ERROR"),
        ("RETURN $missing", 400, "RYUGRAPH_ERROR"),
    ],
)
async def test_what_cannot_run_is_refused_by_name(
    server: GraphServer, text: str, status: int, code: str
) -> None:
    answer = await server.query(text)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert set(answer.json()) == {"error", "meta"}


async def test_parameters_keep_their_types(server: GraphServer) -> None:
    parameters = {
        "i": BIG,
        "f": 0.5,
        "s": "'; DROP",
        "b": False,
        "l": [1, 2],
        "m": {"a": "x"},
        "n": None,
    }
    rows = await server.rows(
        "RETURN $i, $f, $s, $b, $l, $m, $n", parameters=parameters | {"unused": 1}
    )
    assert rows == [list(parameters.values())]


async def test_an_integer_beyond_64_bits_is_said_to_be_one(server: GraphServer) -> None:
    answer = await server.query("RETURN $x", parameters={"x": 2**64})
    assert answer.status_code == 400
    assert "Integers have 64 bits" in answer.json()["error"]["details"]["hint"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": "RETURN 1", "timeout_ms": 0},
        {"query": "RETURN 1", "timeout_ms": 10**8},
    ],
)
async def test_a_body_that_makes_no_sense_is_422(
    server: GraphServer, body: dict[str, object]
) -> None:
    answer = await server.http.post("/query", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "VALIDATION_FAILED")


@pytest.mark.parametrize(
    "text", ["RETURN " + "[" * 48 + "1" + "]" * 48, "RETURN " + "{a: " * 48 + "1" + "}" * 48]
)
async def test_an_answer_nested_too_deeply_is_the_querys_fault(
    server: GraphServer, text: str
) -> None:
    assert (await server.query(text)).status_code in (200, 400)


async def test_a_body_is_taken_up_to_its_limit_and_not_a_byte_more(server: GraphServer) -> None:
    frame = len(b'{"query":"RETURN 1","parameters":{"x":""}}')
    for more, status in ((0, 200), (1, 413)):
        body = (
            b'{"query":"RETURN 1","parameters":{"x":"'
            + b"a" * (16 * 1024**2 - frame + more)
            + b'"}}'
        )
        answer = await server.http.post(
            "/query", content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == status


async def test_an_edge_has_only_the_properties_of_its_type(server: GraphServer) -> None:
    rows = await server.rows("MATCH (a:Person {id: 1})-[e]->(b) RETURN e")
    assert {tuple(sorted(edge)) for [edge] in rows} == {
        ("_dst", "_id", "_src", "_type"),
        ("_dst", "_id", "_src", "_type", "since", "weight"),
    }


@pytest.mark.parametrize(
    ("token", "code"), [("", "AUTHENTICATION_REQUIRED"), ("Bearer wrong", "INVALID_TOKEN")]
)
async def test_only_the_control_plane_is_believed(
    server: GraphServer, token: str, code: str
) -> None:
    for path in ("/schema", "/status", "/lock"):
        answer = await server.http.get(path, headers=PROXY | {"Authorization": token})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, code)


async def test_a_token_that_is_there_twice_is_refused(server: GraphServer) -> None:
    request = server.http.build_request("GET", "/schema")
    token = request.headers["Authorization"]
    request.headers = httpx2.Headers([*request.headers.multi_items(), ("Authorization", token)])
    answer = await server.http.send(request)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "INVALID_TOKEN")


async def test_every_query_is_logged_with_its_author_and_digest_and_without_its_text(
    server: GraphServer,
) -> None:
    text = "MATCH (n:Person {name: 'nobody-else-s-business'}) RETURN n"
    padded = json.dumps({"query": text, "parameters": {"big": 2**62}})
    for request in (
        {"json": {"query": text}},
        {"content": padded, "headers": {"Content-Type": "application/json"}},
    ):
        assert (await server.http.post("/query", **request)).status_code == 200
    lines = [
        json.loads(line)
        for line in server.log.read_text().splitlines()
        if statement_digest(text) in line
    ]
    assert [(line["event"], line["surface"], line["author"]) for line in lines] == [
        ("statement", "cypher", "ada")
    ] * 2
    assert "nobody-else-s-business" not in server.log.read_text()


@pytest.mark.parametrize(
    ("path", "cypher"), [("/query", "query"), ("/subgraph", "cypher")], ids=["query", "subgraph"]
)
async def test_parameters_that_nest_too_deeply_are_refused_and_take_no_place(
    server: GraphServer, path: str, cypher: str
) -> None:
    deep = json.loads("[" * 500 + "]" * 500)
    body = {cypher: "MATCH (n:City) WHERE n.name = $p RETURN n", "parameters": {"p": deep}}
    for _ in range(20):  # more than queries run at once
        answer = await server.http.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "RYUGRAPH_ERROR")
    assert await server.rows("RETURN 1") == [[1]]
