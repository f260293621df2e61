"""Invalid input to reconciliation gives an error message that names the problem, or
the right result; never a wrong count.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from penstock.jobs.control_plane import client_factory
from penstock.reconcile.control_plane import ReconcileControlPlane
from penstock.reconcile.runs.callbacks import RunCaller
from penstock.wiring.default_handlers import default_handlers
from tests.api.test_runs import QUEUES, RULES, listener, over, rows, start, upload
from tests.graphs.deployment import (
    Deployment,
    connected,
    postgres,
    postgres_secrets,
    running_deployment,
    settings,
    until,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LEFT = (
    b"id,ref,amount,currency,day\n"
    b"1,A,10.00,EUR,2024-01-01\n2,B,20.00,EUR,2024-01-02\n3,,30.00,JPY,2024-02-03\n"
)
RIGHT = b"id,ref,amount,currency,day\n1,A,10.00,EUR,2024-01-01\n2,B,20.00,JPY,2024-01-02\n"
KEY = {"left": "ref", "op": "eq", "right": "ref"}
AMOUNT = {"left": "amount", "op": "tolerance", "right": "amount", "absolute": 0}


@pytest.fixture(scope="module")
async def deployment(
    lasting_database: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    async with running_deployment(
        lasting_database, settings(tmp_path_factory.mktemp("home"))
    ) as it:
        yield it


@pytest.fixture(scope="module")
async def me(deployment: Deployment) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": "Bearer operator"}
    async with httpx2.AsyncClient(
        base_url=deployment.http.base_url, headers=headers, timeout=60
    ) as client:
        yield client


@pytest.fixture(scope="module")
async def sources(me: httpx2.AsyncClient) -> dict[str, Any]:
    sides = {
        "left": await upload(me, "left.csv", LEFT),
        "right": await upload(me, "right.csv", RIGHT),
    }
    return {side: {"upload": upload_id, "primary_key": ["id"]} for side, upload_id in sides.items()}


@pytest.fixture(scope="module")
async def ledger(deployment: Deployment, lasting_warehouse: str) -> str:
    """A table of PostgreSQL with a column of each kind."""
    async with connected(lasting_warehouse) as connection:
        await connection.execute(
            "CREATE TABLE ledger AS SELECT i AS id, CASE WHEN i <> 3 THEN chr(64 + i) END AS ref,"
            " (i * 10)::numeric(12, 2) AS amount, '2024-01-01'::date + i AS day,"
            " '2024-01-01 12:00Z'::timestamptz + i * interval '1 day' AS seen, i % 2 = 0 AS even"
            " FROM generate_series(1, 5) AS i"
        )
    config = postgres(lasting_warehouse)
    secrets = postgres_secrets(lasting_warehouse)
    source = await deployment.graphs.sources.add(
        name="db", kind="postgres", owner="me", config=config, secrets=secrets
    )
    return source.name


def refused(answer: httpx2.Response, status: int = 422) -> str:
    """All that an error says."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    return f"{error['code']} {error['message']} {json.dumps(error['details'])}"


def recipe(sources: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"name": "test", "sources": sources, "rules": RULES, **parts}


# documents


async def test_what_cannot_be_kept_is_refused_by_its_field(
    me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    nul, long = "a\x00b", 2**64
    bodies: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/api/runs", {"recipe": recipe(sources, name=nul)}),
        ("POST", "/api/runs", {"recipe": recipe(sources), "parameters": {nul: 1}}),
        ("POST", "/api/runs", {"recipe": recipe(sources), "parameters": {"last": long}}),
        ("POST", "/api/runs", {"recipe": recipe(sources), "sources": {"left": {"upload": nul}}}),
        ("POST", "/api/recipes", {"recipe": recipe(sources, recipe_id="nul", description=nul)}),
        ("POST", "/api/recipes/validate", {"recipe": recipe(sources, name=nul)}),
        ("POST", "/api/recipes/preview", {"recipe": recipe(sources), "parameters": {"last": nul}}),
        ("POST", "/api/runs/1/cancel", {"reason": nul}),
    ]
    for method, path, body in bodies:
        message = refused(await me.request(method, path, json=body))
        assert "NUL character" in message or "64 bits" in message, (path, body, message)


async def test_one_answer_tells_what_is_wrong_with_the_form_the_sources_the_columns_and_the_sql(
    me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    async def faults(**parts: Any) -> dict[str, dict[str, Any]]:
        answer = await me.post(
            "/api/recipes/validate", json={"recipe": {"name": "x", "sources": sources, **parts}}
        )
        assert answer.status_code == 200, answer.text
        report = answer.json()["data"]
        assert report["valid"] is all(fault["severity"] != "error" for fault in report["faults"])
        assert all(fault["message"] and fault["suggestion"] for fault in report["faults"])
        return {fault["path"]: fault for fault in report["faults"]}

    away = {
        "left": sources["left"],
        "right": {"source": "nowhere", "table": "t", "primary_key": "id"},
    }
    conditions = [
        {"left": "reff", "op": "eq", "right": "ref"},
        {"left": "amount", "op": "near", "right": "amount"},
    ]
    by_path = await faults(
        sources=away,
        rules=[{"name": "r", "conditions": conditions}],
        match_sql="DROP TABLE x",
        oops=1,
    )
    assert by_path.keys() == {
        "oops",
        "sources.right",
        "rules.0.conditions.0.left",
        "rules.0.conditions.1.op",
        "match_sql",
    }
    assert {fault["severity"] for fault in (await faults(rules=RULES)).values()} == {"warning"}
    select = "SELECT l.id AS left_id, r.id AS right_id FROM left_src l JOIN right_src r ON"
    assert (
        await faults(match_sql=f"{select} l.ref = r.ref AND similarity(l.ref, r.ref) > 0.5") == {}
    )
    assert "nope" in (await faults(match_sql=f"{select} l.nope = r.ref"))["match_sql"]["message"]
    unnamed = await faults(
        match_sql="SELECT l.id AS one, r.id AS other"
        " FROM left_src l JOIN right_src r ON l.ref = r.ref"
    )
    assert "left key id" in unnamed["match_sql"]["message"]
    assert "left_id" in unnamed["match_sql"]["suggestion"]
    files = await faults(match_sql="SELECT * FROM read_csv('/etc/passwd')")
    assert files.keys() == {"match_sql"}
    wrong = {"left": "ref", "op": "normalized", "right": "ref", "steps": [{"regex": r"a\Z"}]}
    odd = await faults(rules=[RULES[0], {"name": "odd", "conditions": [wrong]}])
    errors = {path for path, fault in odd.items() if fault["severity"] == "error"}
    assert errors == {"rules.1.conditions.0.steps.0.regex"}
    unlike = await faults(match_sql=f"{select} l.ref = r.id + 1")
    assert unlike.keys() == {"match_sql"}
    assert "CAST(x AS VARCHAR)" in unlike["match_sql"]["suggestion"]


async def test_a_recipe_that_asks_for_another_engine_is_explained_in_its_words(
    me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    window = {"left": "day", "op": "date_window", "right": "day", "days": 1}
    asked = recipe(sources, rules=[{"name": "r", "conditions": [KEY, window]}])
    statements = {}
    for engine in ("duckdb", "datafusion"):
        answer = await me.post("/api/recipes/explain", json={"recipe": {**asked, "engine": engine}})
        assert answer.status_code == 200, answer.text
        statements[engine] = answer.json()["data"][0]["sql"]
    assert statements["duckdb"] != statements["datafusion"]
    unknown = await me.post("/api/recipes/explain", json={"recipe": {**asked, "engine": "spark"}})
    assert "RECIPE_INVALID engine: There is no engine 'spark'." in refused(unknown)


async def test_versions_are_looked_at_and_two_writers_do_not_overwrite_each_other(
    me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    first = recipe(sources, recipe_id="kept")
    assert (await me.post("/api/recipes", json={"recipe": first})).status_code == 201
    second = {"recipe": {**first, "description": "new"}}
    assert (
        await me.put("/api/recipes/kept", params={"expected": 1}, json=second)
    ).status_code == 200
    late = await me.put(
        "/api/recipes/kept",
        params={"expected": 1},
        json={"recipe": {**first, "description": "late"}},
    )
    assert "at version 2 now" in refused(late, 409)
    one = (await me.get("/api/recipes/kept", params={"version": 1})).json()["data"]
    assert (one["version"], one["latest"], "description" in one["document"]) == (1, 2, False)
    assert "no version 9" in refused(await me.get("/api/recipes/kept", params={"version": 9}), 404)
    assert "no version 9" in refused(
        await me.post("/api/runs", json={"recipe_id": "kept", "version": 9}), 404
    )


async def test_a_key_of_another_width_names_nobody_and_is_refused(
    me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    assert (
        await me.post("/api/recipes", json={"recipe": recipe(sources, recipe_id="keyed")})
    ).status_code == 201
    path = "/api/recipes/keyed"
    pair = {"kind": "match", "left_key": ["1", "2"], "right_key": ["1"]}
    assert "left record is named by 1 values, not 2" in refused(
        await me.post(f"{path}/decisions", json=pair)
    )
    note = {"side": "right", "key": ["1", "2"], "label": "odd"}
    assert "values of id" in refused(await me.put(f"{path}/items", json=note))
    wrong: list[list[str]] = [["\x00"], [], ["1"] * 9, ["x" * 501]]
    for key in wrong:
        refused(await me.put(f"{path}/items", json={**note, "key": key}))
    assert "Empty note" in refused(
        await me.put(f"{path}/items", json={"side": "right", "key": ["1"]})
    )
    longest = {"side": "right", "key": ["x" * 500], "comment": "y" * 2000}
    assert (await me.put(f"{path}/items", json=longest)).status_code == 200
    refused(await me.put(f"{path}/items", json={**longest, "comment": "y" * 2001}))


async def test_a_schedule_is_checked_when_it_is_made_and_goes_with_its_recipe(
    me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    side = {
        **sources["left"],
        "filters": [{"column": "day", "op": "gte", "value": {"parameter": "since"}}],
    }
    daily = recipe(
        {**sources, "left": side}, recipe_id="daily", parameters={"since": {"type": "date"}}
    )
    assert (await me.post("/api/recipes", json={"recipe": daily})).status_code == 201
    path, good = (
        "/api/recipes/daily/schedule",
        {"cron": "0 3 * * *", "parameters": {"since": "2024-01-01"}},
    )
    for wrong, says in (
        ({"cron": "at three"}, "cron expression"),
        ({"zone": "Mars/Olympus"}, "time zone"),
        ({"parameters": {}}, "Parameter since is missing"),
        ({"parameters": {"since": "2024-02-30"}}, "Parameter since is no date"),
        ({"parameters": {"since": "2024-01-01", "until": 1}}, "no parameter until"),
    ):
        assert says in refused(await me.put(path, json={**good, **wrong}))
    assert (await me.put(path, json=good)).status_code == 200
    assert "recipe:daily" in (await me.get("/api/schedules")).text
    assert (await me.delete("/api/recipes/daily")).status_code == 200
    assert "recipe:daily" not in (await me.get("/api/schedules")).text


async def test_a_side_given_for_one_run_replaces_where_its_records_come_from_as_a_whole(
    me: httpx2.AsyncClient, sources: dict[str, Any], ledger: str
) -> None:
    both = {**sources, "left": {"source": ledger, "table": "ledger", "primary_key": "id"}}
    assert (
        await me.post("/api/recipes", json={"recipe": recipe(both, recipe_id="moved")})
    ).status_code == 201
    for other in (
        {"upload": sources["left"]["upload"]},
        {"query": "SELECT * FROM ledger WHERE id < 3"},
        {"source": ledger, "query": "SELECT * FROM ledger"},
    ):
        answer = await me.post("/api/runs", json={"recipe_id": "moved", "sources": {"left": other}})
        assert answer.status_code == 202, answer.text
        run = answer.json()["data"]["run_id"]
        assert (await me.post(f"/api/runs/{run}/cancel")).status_code == 200
    wrong = await me.post(
        "/api/runs", json={"recipe_id": "moved", "sources": {"left": {"tabel": "x"}}}
    )
    assert "sources.left.tabel" in refused(wrong)
    assert "Did you mean table?" in refused(wrong)
    half = await me.post(
        "/api/runs", json={"recipe_id": "moved", "sources": {"left": {"source": ledger}}}
    )
    assert "either a table or a query" in refused(half)


# filters

SCOPES: list[tuple[dict[str, Any], set[int]]] = [
    ({"column": "ref", "op": "eq", "value": "A"}, {1}),
    ({"column": "ref", "op": "neq", "value": "A"}, {2, 4, 5}),
    ({"column": "amount", "op": "gt", "value": 30}, {4, 5}),
    ({"column": "amount", "op": "gte", "value": 30.0}, {3, 4, 5}),
    ({"column": "day", "op": "lt", "value": "2024-01-03"}, {1}),
    ({"column": "day", "op": "lte", "value": "2024-01-03"}, {1, 2}),
    ({"column": "amount", "op": "between", "value": [20, 40]}, {2, 3, 4}),
    ({"column": "day", "op": "between", "value": ["2024-01-03", "2024-01-04"]}, {2, 3}),
    ({"column": "ref", "op": "in", "value": ["A", "E", "Z"]}, {1, 5}),
    ({"column": "id", "op": "in", "value": [2, 3]}, {2, 3}),
    ({"column": "ref", "op": "like", "value": "%"}, {1, 2, 4, 5}),
    ({"column": "ref", "op": "is_null"}, {3}),
    ({"column": "ref", "op": "is_null", "value": False}, {1, 2, 4, 5}),
]
CSV = b"id,ref,amount,day\n" + b"".join(
    b"%d,%s,%d.00,2024-01-0%d\n" % (i, b"" if i == 3 else bytes([64 + i]), i * 10, i + 1)
    for i in range(1, 6)
)


async def test_every_filter_means_the_same_to_a_database_to_files_and_to_an_upload(
    deployment: Deployment,
    me: httpx2.AsyncClient,
    ledger: str,
    sources: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("files")
    (folder / "ledger.csv").write_bytes(CSV)
    config = {"url": f"file://{folder}"}
    await deployment.graphs.sources.add(
        name="files", kind="files", owner="me", config=config, secrets={}
    )
    uploaded = await upload(me, "ledger.csv", CSV)
    for scope, expected in SCOPES:
        for alias in (ledger, "files"):
            asked = {"table": "ledger", "filters": [scope]}
            answer = await me.post(f"/api/sources/{alias}/load-scoped", json=asked)
            assert answer.status_code == 200, (alias, scope, answer.text)
            row_ids = {int(row["id"]) for row in answer.json()["data"]["rows"]}
            assert row_ids == expected, (alias, scope)
    for scope, expected in SCOPES[2:8]:
        side = {"upload": uploaded, "primary_key": "id", "filters": [scope]}
        seen = await me.post(
            "/api/recipes/preview", json={"recipe": recipe({**sources, "left": side})}
        )
        assert seen.json()["data"]["totals"]["left"]["rows"] == len(expected), (scope, seen.text)


@pytest.mark.parametrize(
    ("scope", "says"),
    [
        ({"column": "nothing", "op": "eq", "value": 1}, "no column 'nothing'"),
        (
            {"column": "amount", "op": "gt", "value": "much"},
            "gt on amount compares a number with 'much'",
        ),
        ({"column": "day", "op": "eq", "value": "2024-02-30"}, "eq on day compares a date"),
        ({"column": "seen", "op": "lt", "value": "yesterday"}, "lt on seen compares a moment"),
        ({"column": "even", "op": "eq", "value": 1}, "eq on even compares"),
        ({"column": "id", "op": "eq", "value": True}, "eq on id compares a number with True"),
        ({"column": "ref", "op": "gt", "value": 5}, "gt on ref compares a text with 5"),
        ({"column": "id", "op": "like", "value": "1%"}, "like is for text columns"),
        (
            {"column": "id", "op": "between", "value": 1},
            "filters.0: Between takes a list of two values",
        ),
        ({"column": "id", "op": "near", "value": 1}, "filters.0.op"),
        ({"column": "id", "op": "eq", "value": {"parameter": "x"}}, "parameter"),
    ],
)
async def test_a_filter_that_does_not_fit_is_an_error_at_the_source(
    me: httpx2.AsyncClient, ledger: str, scope: dict[str, Any], says: str
) -> None:
    answer = await me.post(
        f"/api/sources/{ledger}/load-scoped", json={"table": "ledger", "filters": [scope]}
    )
    assert says in refused(answer)


async def test_booleans_moments_and_every_type_of_parameter_are_filtered_by(
    me: httpx2.AsyncClient, ledger: str, sources: dict[str, Any]
) -> None:
    filters = [
        {"column": "even", "op": "eq", "value": {"parameter": "even"}},
        {"column": "seen", "op": "gt", "value": {"parameter": "since"}},
        {"column": "amount", "op": "lte", "value": {"parameter": "most"}},
        {"column": "ref", "op": "in", "value": [{"parameter": "ref"}, "B"]},
    ]
    side = {"source": ledger, "table": "ledger", "primary_key": "id", "filters": filters}
    asked = recipe(
        {**sources, "left": side},
        parameters={
            "even": {"type": "boolean", "default": True},
            "since": {"type": "date"},
            "most": {"type": "number", "default": "40.00"},
            "ref": {"type": "text", "default": "D"},
        },
    )

    async def ids(**parameters: Any) -> Any:
        answer = await me.post(
            "/api/recipes/preview", json={"recipe": asked, "parameters": parameters}
        )
        return (
            answer if answer.status_code != 200 else answer.json()["data"]["totals"]["left"]["rows"]
        )

    assert await ids(since="2024-01-01") == 2
    assert await ids(since="2024-01-04") == 1
    assert await ids(since="2024-01-01", most=39.99) == 1
    assert await ids(since="2024-01-01", even=False) == 0
    assert "Parameter since is missing" in refused(await ids())
    for wrong in ({"since": 5}, {"even": "yes"}, {"most": "a lot"}, {"most": True}, {"ref": 7}):
        sent = {"since": "2024-01-01", **wrong}
        assert "Parameter" in refused(await ids(**sent))


# sources


async def test_a_password_goes_in_and_never_comes_back(
    me: httpx2.AsyncClient, lasting_warehouse: str, sources: dict[str, Any]
) -> None:
    secret = postgres_secrets(lasting_warehouse)["password"]
    away = {**postgres(lasting_warehouse), "database": "nowhere"}
    for config, status in ((postgres(lasting_warehouse), 201), (away, 503)):
        body = {
            "alias": f"vault{status}",
            "type": "postgres",
            "config": config,
            "credentials": {"password": secret},
        }
        answer = await me.post("/api/sources", json=body)
        assert answer.status_code == status, answer.text
        assert secret not in answer.text
    listed = await me.get("/api/sources")
    assert secret not in listed.text
    assert [s["alias"] for s in listed.json()["data"] if s["alias"].startswith("vault")] == [
        "vault201"
    ]
    assert secret not in (await me.get("/api/data-sources")).text
    again = await me.post(
        "/api/sources", json={"alias": "vault201", "type": "postgres", "config": away}
    )
    assert refused(again, 409)
    assert "no source type 'dbase'" in refused(
        await me.post("/api/sources", json={"alias": "x", "type": "dbase"})
    )


async def test_rows_are_shown_up_to_a_limit_and_queries_are_guarded(
    me: httpx2.AsyncClient, ledger: str
) -> None:
    path = f"/api/sources/{ledger}"
    assert (
        len(
            (await me.get(f"{path}/preview", params={"table": "ledger", "limit": 1000})).json()[
                "data"
            ]["rows"]
        )
        == 5
    )
    refused(await me.get(f"{path}/preview", params={"table": "ledger", "limit": 1001}))
    refused(await me.get(f"{path}/preview", params={"table": "ledger", "limit": 0}))
    refused(await me.post(f"{path}/load-scoped", json={"table": "ledger", "limit": 1001}))
    assert "either a table or a query" in refused(await me.post(f"{path}/load-scoped", json={}))
    assert "nothing" in refused(await me.get(f"{path}/preview", params={"table": "nothing"}))
    for query in (
        "DELETE FROM ledger",
        "SELECT pg_sleep(9)",
        "SELECT 1; SELECT 2",
        "SELECT pg_read_file('/etc/passwd')",
    ):
        refused(await me.post(f"{path}/load-scoped", json={"query": query}))
    refused(await me.get("/api/sources/nobody/preview", params={"table": "x"}), 404)
    fifty = [{"column": "id", "op": "gt", "value": 0}] * 50
    assert (
        await me.post(f"{path}/load-scoped", json={"table": "ledger", "filters": fifty})
    ).status_code == 200
    refused(
        await me.post(
            f"{path}/load-scoped", json={"table": "ledger", "filters": [*fifty, fifty[0]]}
        )
    )


@pytest.mark.parametrize(("over", "status"), [(0, b"422"), (1, b"413")])
async def test_an_upload_may_be_so_large_and_no_larger(
    me: httpx2.AsyncClient, over: int, status: bytes
) -> None:
    """The size is refused as soon as it is announced; a name that is refused shows that the size
    was not."""
    reader, writer = await asyncio.open_connection(me.base_url.host, me.base_url.port)
    head = (
        "POST /api/uploads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer operator\r\n"
        f"Content-Length: {1024**3 + over}"
    )
    writer.write(f"{head}\r\n\r\n".encode())
    async with asyncio.timeout(30):
        assert (await reader.readline()).split()[1] == status
    writer.close()
    await writer.wait_closed()


# runs


async def csv(me: httpx2.AsyncClient, *lines: str) -> dict[str, Any]:
    return {
        "upload": await upload(me, "x.csv", "\n".join(lines).encode() + b"\n"),
        "primary_key": ["id"],
    }


async def test_bad_records_end_a_run_with_a_sentence_or_in_the_right_counts(
    deployment: Deployment, me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    many = ["id,ref", *(f"{i},same" for i in range(1100))]
    same = [{"name": "same", "conditions": [KEY]}]
    texts = await csv(me, "id,ref,amount", "1,A,10.00", '2,B,"12,50"', "3,C,n/a")
    twice = await csv(me, "id,ref", "1,A", "1,A", ",B", "4,")
    clean = await csv(me, "id,ref", "7,A", "8,B", "9,")
    asked = {
        "no key column": recipe(
            {**sources, "left": {**sources["left"], "primary_key": ["invoice"]}}
        ),
        "text for numbers": recipe({**sources, "left": texts}),
        "rows multiplied": recipe(
            {"left": await csv(me, *many), "right": await csv(me, *many)}, rules=same
        ),
        "keys twice and null": recipe({"left": twice, "right": clean}, rules=same),
        "nothing on a side": recipe({"left": await csv(me, "id,ref"), "right": clean}, rules=same),
        "currencies": recipe(
            sources,
            rules=[
                {
                    "name": "r",
                    "conditions": [
                        KEY,
                        AMOUNT,
                        {"left": "currency", "op": "eq", "right": "currency"},
                    ],
                }
            ],
            output={"currency": {"left": "currency", "right": "currency"}},
        ),
        "currencies mixed": recipe(sources, rules=[{"name": "r", "conditions": [KEY, AMOUNT]}]),
        "too much open": recipe(sources, rules=same, thresholds={"max_unmatched_pct": 10}),
    }
    begun = {name: await start(me, recipe=document) for name, document in asked.items()}
    async with deployment.working(queues=QUEUES):
        ended = {name: await over(me, run) for name, run in begun.items()}

    def failed(name: str) -> str:
        assert ended[name]["status"] == "failed", ended[name]
        error = ended[name]["error"]
        return f"{error['code']} {error['message']}"

    def left(name: str) -> dict[str, Any]:
        assert ended[name]["status"] == "completed", ended[name]["error"]
        totals: dict[str, Any] = ended[name]["totals"]["left"]
        return totals

    assert "sources.left.primary_key: There is no column 'invoice'" in failed("no key column")
    message = failed("text for numbers")
    assert (
        "RECONCILE_BAD_VALUE Column amount of the left side has 2 values that are no number"
        in message
    )
    assert "'12,50'" in message
    assert "RECONCILE_TOO_MANY Rule 'same' multiplies rows" in failed("rows multiplied")
    keys = left("keys twice and null")
    assert (keys["rows"], keys["matched"], keys["null_keys"], keys["reasons"]) == (
        4,
        2,
        1,
        {"no_key": 1, "duplicate": 1},
    )
    duplicates = await rows(me, ended["keys twice and null"], "duplicates")
    assert [(row["side"], row["key"], row["count"]) for row in duplicates] == [("left", '["1"]', 2)]
    assert (
        left("nothing on a side")["rows"],
        ended["nothing on a side"]["totals"]["right"]["unmatched"],
    ) == (0, 3)
    assert left("currencies")["amounts"]["unmatched"] == {"EUR": "20.000000", "JPY": "30.000000"}
    assert left("currencies mixed")["matched"] == 2
    manifest = (await me.get(f"/api/runs/{ended['currencies mixed']['run_id']}/manifest")).json()[
        "data"
    ]
    assert ["currency" in warning["message"] for warning in manifest["warnings"]] == [True]
    assert "RECONCILE_THRESHOLD 33.33 % of the left side" in failed("too much open")
    open_run = ended["too much open"]["run_id"]
    assert len(await rows(me, ended["too much open"], "unmatched_left")) == 1
    report = await me.get(f"/api/runs/{open_run}/report")
    assert "33.33 % of the left side is unmatched" in report.text
    nothing = await me.get(f"/api/runs/{ended['no key column']['run_id']}/evidence/matched")
    assert "it has no evidence" in refused(nothing, 409)
    refused(await me.get(f"/api/runs/{open_run}/evidence/everything"))
    refused(await me.get(f"/api/runs/{open_run}/evidence/matched", params={"format": "pdf"}))
    refused(await me.get(f"/api/runs/{open_run}/evidence/matched", params={"limit": 0}))
    refused(await me.post(f"/api/runs/{ended['currencies']['run_id']}/retry"), 409)


async def test_two_runs_of_one_recipe_at_once_do_not_touch_each_other(
    deployment: Deployment, me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    assert (
        await me.post("/api/recipes", json={"recipe": recipe(sources, recipe_id="twice")})
    ).status_code == 201
    begun = await asyncio.gather(*(start(me, recipe_id="twice") for _ in range(4)))
    async with deployment.working(queues=QUEUES):
        ended = [await over(me, run) for run in begun]
    assert [run["status"] for run in ended] == ["completed"] * 4, [run["error"] for run in ended]
    assert len({run["evidence_sha256"] for run in ended}) == 1
    assert len({json.dumps(run["totals"]) for run in ended}) == 1
    for run in ended:
        opened = await rows(me, run, "open_items")
        assert {row["key"] for row in opened} == {"3"}
        assert all(row["since_run"] <= run["run_id"] for row in opened)


async def test_items_of_a_run_that_passed_a_threshold_are_carried_on_and_its_parameters_told(
    deployment: Deployment, me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    side = {
        **sources["left"],
        "filters": [{"column": "id", "op": "gte", "value": {"parameter": "first"}}],
    }
    strict = recipe(
        {**sources, "left": side}, recipe_id="strict", parameters={"first": {"type": "number"}}
    )
    strict |= {"thresholds": {"max_unmatched_pct": 0}}
    assert (await me.post("/api/recipes", json={"recipe": strict})).status_code == 201
    async with deployment.working(queues=QUEUES):
        ended = [
            await over(me, await start(me, recipe_id="strict", parameters={"first": n}))
            for n in (1, 2, 1)
        ]
    assert [run["status"] for run in ended] == ["failed"] * 3
    opened = [
        {
            (row["side"], row["key"]): (row["since_run"], row["runs_open"])
            for row in await rows(me, run, "open_items")
        }
        for run in ended
    ]
    first, second, third = (run["run_id"] for run in ended)
    assert opened[0] == {("left", "3"): (first, 1)}
    assert opened[1] == {("left", "3"): (first, 2), ("right", "1"): (second, 1)}
    assert opened[2] == {("left", "3"): (first, 3)}
    assert [row["key"] for row in await rows(me, ended[2], "cleared_items")] == ["1"]
    manifest = (await me.get(f"/api/runs/{third}/manifest")).json()["data"]
    assert manifest["run"] == {"run_id": third, "parameters": {"first": 1}}
    assert manifest["recipe"]["version"] == 1
    assert {
        "format",
        "recipe",
        "engine",
        "inputs",
        "totals",
        "rules",
        "warnings",
        "files",
        "timings",
    } <= manifest.keys()
    assert all(len(file["sha256"]) == 64 for file in manifest["files"])


async def test_a_callback_that_never_answers_is_given_up_and_the_run_stays_as_it_was(
    deployment: Deployment, me: httpx2.AsyncClient, sources: dict[str, Any]
) -> None:
    handlers = default_handlers(deployment.settings)
    handlers._handlers["run_callback"] = RunCaller(
        client_factory(deployment.settings, ReconcileControlPlane), seconds=0.05
    )
    async with (
        listener([0] * 100) as (url, got),
        deployment.working(handlers=handlers, queues=QUEUES),
    ):
        run = await start(me, recipe=recipe(sources), callback_url=url)
        ended = await over(me, run)

        async def given_up() -> bool:
            jobs = (
                await me.get("/api/jobs", params={"kind": "run_callback", "status": "failed"})
            ).json()["data"]
            return len(jobs) == 1

        await until(given_up)
        assert len(got) == 8
    again = (await me.get(f"/api/runs/{run['run_id']}")).json()["data"]
    assert (ended["status"], again) == ("completed", ended)
    assert again["callback_secret"] is None


async def test_a_sheet_too_long_is_an_error_and_no_broken_file(
    deployment: Deployment,
    me: httpx2.AsyncClient,
    sources: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with deployment.working(queues=QUEUES):
        run = await over(me, await start(me, recipe=recipe(sources)))
    monkeypatch.setattr("penstock.reconcile.evidence.download.MAX_SHEET_ROWS", 1)
    monkeypatch.setattr("penstock.reconcile.evidence.reader.MAX_SHEET_ROWS", 1)
    path = f"/api/runs/{run['run_id']}/evidence/matched"
    assert "1 rows at most" in refused(await me.get(path, params={"format": "xlsx"}))
    assert (await me.get(path, params={"format": "xlsx", "limit": 1})).status_code == 200
