"""Runs through the public API: uploads, sources, recipes, evidence, with real workers over HTTP."""

from __future__ import annotations

import asyncio
import csv as csv_module
import hmac
import io
import json
import tempfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from xlsxwriter import Workbook

from penstock.jobs.control_plane import client_factory
from penstock.reconcile.control_plane import ReconcileControlPlane
from penstock.reconcile.recipes import preview_limits
from penstock.reconcile.runs.callbacks import RunCaller
from penstock.reconcile.staging.handlers import StagePlanner
from penstock.sources.contract import Limits
from penstock.wiring.default_handlers import default_handlers
from tests.engines.small_disk import small_disk
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
    from pathlib import Path

    from penstock.jobs.handler import Answer, Job, JobContext

QUEUES = ("stage", "match", "publish")
INVOICES = b'\xef\xbb\xbfid;ref;amount;note\n1;A;10.00;"two\nlines"\n2;B;20.00;x\n3;C;30.00;\n'
PAYMENTS = b"id,ref,amount\n1,A,10.02\n2,B,20.03\n4,D,40.00\n"
RULES = [
    {
        "name": "exact",
        "conditions": [
            {"left": "ref", "op": "eq", "right": "ref"},
            {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.02"},
        ],
    }
]


@pytest.fixture
async def deployment(database: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with running_deployment(database, settings(tmp_path / "home")) as it:
        yield it


@pytest.fixture
async def me(deployment: Deployment) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": "Bearer operator"}
    async with httpx2.AsyncClient(
        base_url=deployment.http.base_url, headers=headers, timeout=60
    ) as client:
        yield client


async def upload(me: httpx2.AsyncClient, name: str, data: bytes, **more: str) -> str:
    answer = await me.post("/api/uploads", params={"name": name, **more}, content=data)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["upload_id"])


async def two(me: httpx2.AsyncClient) -> dict[str, Any]:
    sides = {
        "left": await upload(me, "invoices.csv", INVOICES),
        "right": await upload(me, "payments.csv", PAYMENTS),
    }
    return {side: {"upload": upload_id, "primary_key": ["id"]} for side, upload_id in sides.items()}


async def start(me: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await me.post("/api/runs", json=body)
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"/api/runs/{answer.json()['data']['run_id']}"
    run: dict[str, Any] = answer.json()["data"]
    return run


async def over(me: httpx2.AsyncClient, run: dict[str, Any]) -> dict[str, Any]:
    latest: dict[str, Any] = {}

    async def is_it() -> bool:
        latest.update((await me.get(f"/api/runs/{run['run_id']}")).json()["data"])
        return latest["status"] in ("completed", "failed", "cancelled")

    await until(is_it)
    return latest


async def rows(me: httpx2.AsyncClient, run: dict[str, Any], table: str) -> list[dict[str, Any]]:
    answer = await me.get(f"/api/runs/{run['run_id']}/evidence/{table}")
    assert answer.status_code == 200, answer.text
    records: list[dict[str, Any]] = answer.json()
    return records


async def test_two_uploads_become_evidence_in_every_form(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    async with deployment.working(queues=QUEUES):
        recipe = {"name": "monthly", "sources": await two(me), "rules": RULES}
        run = await over(me, await start(me, recipe=recipe))
    assert run["status"] == "completed", run["error"]
    assert {side: run["totals"][side]["matched"] for side in ("left", "right")} == {
        "left": 1,
        "right": 1,
    }
    assert run["progress"]["percent"] == 100.0
    assert [row["left_id"] for row in await rows(me, run, "matched")] == ["1"]
    assert [(row["ref"], row["reason"]) for row in await rows(me, run, "unmatched_left")] == [
        ("B", "amount_out_of_tolerance"),
        ("C", "no_key"),
    ]
    path = f"/api/runs/{run['run_id']}/evidence/unmatched_right"
    forms = {
        form: (await me.get(path, params={"format": form})).content
        for form in ("csv", "parquet", "arrow", "xlsx")
    }
    assert pq.read_table(io.BytesIO(forms["parquet"])).num_rows == 2
    assert pa.ipc.open_stream(forms["arrow"]).read_all().num_rows == 2
    assert forms["csv"].count(b"\n") == 3
    assert forms["xlsx"].startswith(b"PK")
    report = await me.get(f"/api/runs/{run['run_id']}/report")
    assert report.headers["content-type"].startswith("text/html")
    assert "monthly" in report.text
    manifest = (await me.get(f"/api/runs/{run['run_id']}/manifest")).json()["data"]
    assert manifest["evidence_sha256"] == run["evidence_sha256"]


async def test_a_csv_of_evidence_has_formulas_only_where_they_are_asked_for(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    hostile = b"id,ref,amount,note\n=1+1,Q,1,@SUM(A1)\n"
    sources = await two(me)
    sources["left"]["upload"] = await upload(me, "hostile.csv", hostile)
    document = {"name": "hostile", "sources": sources, "rules": RULES}
    async with deployment.working(queues=QUEUES):
        run = await over(me, await start(me, recipe=document))
    path = f"/api/runs/{run['run_id']}/evidence/unmatched_left?format=csv"
    [row] = csv_module.DictReader((await me.get(path)).text.splitlines())
    assert {row["id"], row["note"]} == {"'=1+1", "'@SUM(A1)"}
    [row] = csv_module.DictReader((await me.get(f"{path}&formulas=keep")).text.splitlines())
    assert {row["id"], row["note"]} == {"=1+1", "@SUM(A1)"}
    assert (await me.get(f"{path}&formulas=run")).status_code == 422


async def test_two_runs_of_the_same_have_one_digest(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    recipe = {"name": "monthly", "sources": await two(me), "rules": RULES}
    begun = [await start(me, recipe=recipe) for _ in range(2)]
    async with deployment.working(queues=QUEUES):
        ended = [await over(me, run) for run in begun]
    assert ended[0]["evidence_sha256"] == ended[1]["evidence_sha256"] is not None


async def test_runs_that_found_the_same_have_one_digest_whatever_engine_and_upload_they_had(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    begun = [
        await start(
            me, recipe={"name": engine, "engine": engine, "sources": await two(me), "rules": RULES}
        )
        for engine in ("duckdb", "datafusion")
    ]
    other = [{**RULES[0], "name": "another name of the rule"}, *RULES[1:]]
    begun.append(
        await start(me, recipe={"name": "other", "sources": await two(me), "rules": other})
    )
    async with deployment.working(queues=QUEUES):
        digests = [(await over(me, run))["evidence_sha256"] for run in begun]
    assert digests[0] == digests[1] is not None
    assert digests[2] not in (None, digests[0])


async def test_a_saved_recipe_has_versions_and_runs_by_its_id(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    recipe = {"recipe_id": "monthly", "name": "monthly", "sources": await two(me), "rules": RULES}
    assert (await me.post("/api/recipes", json={"recipe": recipe})).status_code == 201
    assert (await me.post("/api/recipes", json={"recipe": recipe})).status_code == 409
    changed = await me.put(
        "/api/recipes/monthly", json={"recipe": {**recipe, "description": "better"}}
    )
    assert changed.json()["data"]["version"] == 2
    again = await me.put(
        "/api/recipes/monthly", json={"recipe": {**recipe, "description": "better"}}
    )
    assert again.json()["data"]["version"] == 2
    assert [
        v["version"] for v in (await me.get("/api/recipes/monthly/versions")).json()["data"]
    ] == [2, 1]
    steps = (await me.get("/api/recipes/monthly/explain")).json()["data"]
    assert "DECIMAL" in steps[0]["sql"]
    async with deployment.working(queues=QUEUES):
        run = await over(me, await start(me, recipe_id="monthly"))
    assert (run["status"], run["recipe_version"]) == ("completed", 2)
    assert (await me.get("/api/runs", params={"recipe_id": "monthly"})).json()["meta"]["total"] == 1
    assert (await me.delete("/api/recipes/monthly")).status_code == 200
    assert (await me.get("/api/recipes/monthly")).status_code == 404


async def test_every_fault_is_told_at_once_against_the_real_columns(me: httpx2.AsyncClient) -> None:
    sources = await two(me)
    sources["left"]["primary_key"] = ["invoice"]
    rules = [{"name": "r", "conditions": [{"left": "reff", "op": "eq", "right": "ref"}]}]
    body = {"recipe": {"name": "x", "sources": sources, "rules": rules}}
    report = (await me.post("/api/recipes/validate", json=body)).json()["data"]
    assert not report["valid"]
    assert {fault["path"] for fault in report["faults"]} == {
        "sources.left.primary_key",
        "rules.0.conditions.0.left",
    }
    body["recipe"]["sources"]["right"] = {"source": "nowhere", "table": "t", "primary_key": "id"}
    report = (await me.post("/api/recipes/validate", json=body)).json()["data"]
    assert "nowhere" in report["faults"][0]["message"]


async def test_a_run_whose_columns_are_missing_fails_with_a_sentence(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    rules = [{"name": "r", "conditions": [{"left": "reff", "op": "eq", "right": "ref"}]}]
    run = await start(me, recipe={"name": "x", "sources": await two(me), "rules": rules})
    async with deployment.working(queues=QUEUES):
        ended = await over(me, run)
    assert ended["status"] == "failed"
    assert "reff" in ended["error"]["message"]
    assert (await me.get(f"/api/runs/{run['run_id']}/report")).status_code == 409


async def fill(dsn: str, count: int) -> None:
    async with connected(dsn) as connection:
        await connection.execute(
            "CREATE TABLE invoices AS"
            " SELECT i AS id, 'R' || i AS ref, (i % 1000)::numeric(12,2) AS amount,"
            f" '2024-01-01'::date + (i % 28) AS day FROM generate_series(1, {count}) AS i"
        )
        await connection.execute(
            "CREATE TABLE payments AS SELECT * FROM invoices WHERE id % 10 <> 0"
        )
        await connection.execute("ANALYZE invoices, payments")


def sides(**more: Any) -> dict[str, Any]:
    return {
        "left": {"source": "db", "table": "invoices", "primary_key": ["id"], **more},
        "right": {"source": "db", "table": "payments", "primary_key": ["id"]},
    }


async def test_postgres_is_staged_in_chunks_of_one_moment_and_cleaned_up(
    deployment: Deployment, me: httpx2.AsyncClient, warehouse: str
) -> None:
    await fill(warehouse, 20_000)
    await deployment.graphs.sources.add(
        name="db",
        kind="postgres",
        owner="me",
        config=postgres(warehouse),
        secrets=postgres_secrets(warehouse),
    )
    handlers = default_handlers(deployment.settings)
    small = StagePlanner(
        client_factory(deployment.settings, ReconcileControlPlane),
        limits=Limits(chunk_bytes=200_000, max_chunks=4),
    )
    handlers._handlers["stage_plan"] = small
    run = await start(me, recipe={"name": "pg", "sources": sides(), "rules": RULES})
    async with deployment.working(handlers=handlers, queues=QUEUES):
        ended = await over(me, run)
        assert ended["status"] == "completed", ended["error"]

        async def clean() -> bool:
            return not any(key.startswith("staging/") for key in await deployment.files())

        await until(clean)
    assert ended["totals"]["left"]["rows"] == 20_000
    assert (ended["totals"]["left"]["matched"], ended["totals"]["left"]["unmatched"]) == (
        18_000,
        2000,
    )
    assert ended["progress"]["jobs"] > 7
    assert ended["progress"]["rows"] == 38_000


async def test_a_table_that_changes_while_it_is_staged_is_seen_at_one_moment(
    deployment: Deployment, me: httpx2.AsyncClient, warehouse: str
) -> None:
    await fill(warehouse, 20_000)
    await deployment.graphs.sources.add(
        name="db",
        kind="postgres",
        owner="me",
        config=postgres(warehouse),
        secrets=postgres_secrets(warehouse),
    )
    handlers = default_handlers(deployment.settings)
    small = Limits(chunk_bytes=200_000, max_chunks=4)
    handlers._handlers["stage_plan"] = StagePlanner(
        client_factory(deployment.settings, ReconcileControlPlane), limits=small
    )
    stage = handlers._handlers["stage_chunk"]

    async def changed_before(job: Job, ctx: JobContext) -> Answer:
        async with connected(warehouse) as connection:
            await connection.execute(f"DELETE FROM {tables[job.payload['side']]} WHERE id % 3 = 0")
            await connection.execute(
                f"INSERT INTO {tables[job.payload['side']]} SELECT 999, 'new', 1, now()"
            )
        return await stage(job, ctx)

    tables = {"left": "invoices", "right": "payments"}
    handlers._handlers["stage_chunk"] = changed_before
    run = await start(me, recipe={"name": "pg", "sources": sides(), "rules": RULES})
    async with deployment.working(handlers=handlers, queues=QUEUES):
        ended = await over(me, run)
    assert ended["status"] == "completed", ended["error"]
    assert [ended["totals"][side]["rows"] for side in ("left", "right")] == [20_000, 18_000]


async def test_a_duckdb_file_meets_an_upload_with_exact_types(
    deployment: Deployment, me: httpx2.AsyncClient, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.duckdb"
    with duckdb.connect(str(file)) as db:
        db.execute(
            "CREATE TABLE ledger (id INTEGER, ref VARCHAR, amount DECIMAL(18, 4), paid TIMESTAMPTZ)"
        )
        db.execute("INSERT INTO ledger VALUES (1, 'A', 10.0000, now()), (2, 'B', 20.0100, NULL)")
    await deployment.source("duckdb", {"database": str(file)})
    [source] = (await me.get("/api/sources")).json()["data"]
    left = {
        "source": source["alias"],
        "query": "SELECT * FROM ledger WHERE id > 0",
        "primary_key": "id",
    }
    right = {"upload": await upload(me, "payments.csv", PAYMENTS), "primary_key": "id"}
    recipe = {"name": "mixed", "sources": {"left": left, "right": right}, "rules": RULES}
    async with deployment.working(queues=QUEUES):
        ended = await over(me, await start(me, recipe=recipe))
    assert ended["status"] == "completed", ended["error"]
    assert (ended["totals"]["left"]["matched"], ended["totals"]["left"]["unmatched"]) == (2, 0)


async def test_filters_and_parameters_scope_a_source(
    deployment: Deployment, me: httpx2.AsyncClient, warehouse: str
) -> None:
    await fill(warehouse, 1000)
    await deployment.graphs.sources.add(
        name="db",
        kind="postgres",
        owner="me",
        config=postgres(warehouse),
        secrets=postgres_secrets(warehouse),
    )
    filters = [
        {"column": "id", "op": "lte", "value": {"parameter": "last"}},
        {"column": "day", "op": "between", "value": ["2024-01-01", "2024-01-10"]},
    ]
    recipe = {
        "name": "scoped",
        "sources": sides(filters=filters),
        "rules": RULES,
        "parameters": {"last": {"type": "number", "default": 5}},
    }
    async with deployment.working(queues=QUEUES):
        ended = await over(me, await start(me, recipe=recipe, parameters={"last": 100}))
        assert ended["totals"]["left"]["rows"] == 39, ended["error"]
        wrong = sides(filters=[{"column": "nothing", "op": "eq", "value": 1}])
        failed = await over(me, await start(me, recipe={**recipe, "sources": wrong}, parameters={}))
    assert failed["status"] == "failed"
    assert "nothing" in failed["error"]["message"]
    refused = await me.post("/api/runs", json={"recipe": recipe, "parameters": {"last": "soon"}})
    assert (refused.status_code, refused.json()["error"]["details"]["parameter"]) == (422, "last")


async def test_filters_are_held_against_uploads_too(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    sources = await two(me)
    sources["left"]["filters"] = [{"column": "ref", "op": "in", "value": ["A", "C"]}]
    async with deployment.working(queues=QUEUES):
        ended = await over(
            me, await start(me, recipe={"name": "x", "sources": sources, "rules": RULES})
        )
    assert ended["totals"]["left"]["rows"] == 2, ended["error"]


async def test_rows_of_a_source_can_be_looked_at(
    deployment: Deployment, me: httpx2.AsyncClient, warehouse: str
) -> None:
    await fill(warehouse, 50)
    source = {
        "type": "postgres",
        "config": postgres(warehouse),
        "credentials": postgres_secrets(warehouse),
    }
    response = await me.post("/api/sources", json={"alias": "db", **source})
    assert response.status_code == 201, response.text
    assert response.json()["data"]["connected"] is True
    assert [s["alias"] for s in (await me.get("/api/sources")).json()["data"]] == ["db"]
    seen = (
        await me.get("/api/sources/db/preview", params={"table": "invoices", "limit": 3})
    ).json()["data"]
    assert (len(seen["rows"]), seen["rows"][0]["amount"]) == (3, "1.00")
    scoped = {"table": "invoices", "filters": [{"column": "id", "op": "gt", "value": 48}]}
    assert (
        len((await me.post("/api/sources/db/load-scoped", json=scoped)).json()["data"]["rows"]) == 2
    )
    away = {"alias": "away", **source, "config": postgres(warehouse) | {"database": "nowhere"}}
    assert (await me.post("/api/sources", json=away)).status_code == 503
    assert len((await me.get("/api/sources")).json()["data"]) == 1


async def test_a_look_at_rows_that_are_too_wide_for_the_control_plane_is_refused(
    deployment: Deployment, me: httpx2.AsyncClient, tmp_path: Path
) -> None:
    """A thousand rows of 128 KB: what is looked at is bounded in bytes as well as in rows."""
    with duckdb.connect(str(tmp_path / "wide.duckdb")) as db:
        db.execute(
            "CREATE TABLE wide AS SELECT range AS id, repeat('x', 131072) AS text FROM range(1000)"
        )
    config = {"database": str(tmp_path / "wide.duckdb"), "memory_limit": "1GB"}
    await deployment.graphs.sources.add(
        name="wide", kind="duckdb", owner="me", config=config, secrets={}
    )
    look = {"table": "wide", "limit": 1000}
    refused = await me.get("/api/sources/wide/preview", params=look)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "VALIDATION_FAILED"), (
        refused.text
    )
    assert "64 MB" in refused.json()["error"]["message"]
    assert (
        await me.get("/api/sources/wide/preview", params=look | {"limit": 10})
    ).status_code == 200


async def test_a_look_shows_as_many_cells_as_one_answer_takes_and_not_one_more(
    deployment: Deployment, me: httpx2.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand rows of a thousand columns are small, and a million values in the loop."""
    with duckdb.connect(str(tmp_path / "square.duckdb")) as db:
        db.execute("CREATE TABLE square AS SELECT range AS a, range AS b FROM range(100)")
    config = {"database": str(tmp_path / "square.duckdb")}
    await deployment.graphs.sources.add(
        name="square", kind="duckdb", owner="me", config=config, secrets={}
    )
    monkeypatch.setattr(preview_limits, "MAX_CELLS", 20)
    look = {"table": "square"}
    assert (
        await me.get("/api/sources/square/preview", params=look | {"limit": 10})
    ).status_code == 200
    refused = await me.get("/api/sources/square/preview", params=look | {"limit": 11})
    assert (refused.status_code, refused.json()["error"]["details"]["max_cells"]) == (422, 20)


async def test_events_are_heard_and_not_looked_for(
    deployment: Deployment, me: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.api.reconcile.runs.LOOK_SECONDS", 3600.0)
    run = await start(me, recipe={"name": "x", "sources": await two(me), "rules": RULES})
    statuses: list[str] = []
    async with asyncio.timeout(30), me.stream("GET", f"/api/runs/{run['run_id']}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                statuses.append(json.loads(line.removeprefix("data: "))["status"])
                if len(statuses) == 1:
                    async with deployment.working(queues=QUEUES):
                        await over(me, run)
    assert (statuses[0], statuses[-1]) == ("ready", "completed")


async def test_a_cancelled_run_ends_its_stream_of_events(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    run = await start(me, recipe={"name": "x", "sources": await two(me), "rules": RULES})
    seen: list[str] = []
    async with me.stream("GET", f"/api/runs/{run['run_id']}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                seen.append(line.removeprefix("event: "))
                if len(seen) == 1:
                    await me.post(
                        f"/api/runs/{run['run_id']}/cancel", json={"reason": "wrong file"}
                    )
    assert seen[0] == "progress"
    assert seen.index("end") == len(seen) - 1, "and its steps on the way may be seen, or not"
    again = await me.post(f"/api/runs/{run['run_id']}/retry")
    assert (again.status_code, again.json()["data"]["retry_of"]) == (202, run["run_id"])


@asynccontextmanager
async def listener(
    answers: list[int],
) -> AsyncIterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """A server that takes callbacks: answers in order, 0 is silence."""
    got: list[tuple[dict[str, str], bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers["content-length"]))
        got.append((headers, body))
        status = answers.pop(0) if answers else 200
        if not status:
            await reader.read()
        else:
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/done", got


async def test_a_callback_is_signed_and_tried_again_until_it_is_taken(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    handlers = default_handlers(deployment.settings)
    handlers._handlers["run_callback"] = RunCaller(
        client_factory(deployment.settings, ReconcileControlPlane), seconds=0.3
    )
    async with (
        listener([0, 500]) as (url, got),
        deployment.working(handlers=handlers, queues=QUEUES),
    ):
        recipe = {"name": "x", "sources": await two(me), "rules": RULES}
        run = await start(me, recipe=recipe, callback_url=url)
        ended = await over(me, run)

        async def thrice() -> bool:
            return len(got) == 3

        await until(thrice)
    assert ended["status"] == "completed"
    headers, body = got[-1]
    signature = hmac.new(run["callback_secret"].encode(), body, "sha256").hexdigest()
    assert headers["x-penstock-signature"] == f"sha256={signature}"
    assert json.loads(body)["status"] == "completed"


async def test_a_callback_into_the_cloud_s_metadata_is_refused(me: httpx2.AsyncClient) -> None:
    body = {"recipe": {"name": "x", "sources": await two(me), "rules": RULES}}
    refused = await me.post(
        "/api/runs", json={**body, "callback_url": "http://169.254.169.254/latest"}
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "URL_REFUSED")


CSVS: list[tuple[str, bytes, dict[str, str], list[str]]] = [
    ("semi.csv", b"a;b\n1;2\n", {}, ["a", "b"]),
    ("tab.tsv", b"a\tb\n1\t2\n", {}, ["a", "b"]),
    (
        "old.csv",
        "n\u00e4me,b\nJ\u00fcrgen,2\n".encode("cp1252"),
        {"encoding": "cp1252"},
        ["n\u00e4me", "b"],
    ),
    ("wide.csv", "a,b\n1,2\n".encode("utf-16"), {}, ["a", "b"]),
    ("pipe.txt", b"a|b\n1|2\n", {"delimiter": "|"}, ["a", "b"]),
]
BROKEN = [
    ("x.pdf", b"%PDF"),
    ("x.csv", b""),
    ("x.parquet", b"PAR1"),
    ("x.xlsx", b"PK"),
    ("x.csv", b"\xff\xfa,\n1,2"),
]


async def test_a_file_is_read_whatever_its_delimiter_and_encoding_or_refused(
    me: httpx2.AsyncClient,
) -> None:
    for name, data, more, columns in CSVS:
        response = await me.post("/api/uploads", params={"name": name, **more}, content=data)
        assert response.status_code == 201, response.text
        upload = response.json()["data"]
        assert ([column["name"] for column in upload["columns"]], upload["rows"]) == (columns, 1)
    for name, data in BROKEN:
        refused = await me.post("/api/uploads", params={"name": name}, content=data)
        assert refused.status_code == 422, refused.text


async def test_a_sheet_is_an_upload_with_types(me: httpx2.AsyncClient, tmp_path: Path) -> None:
    place = tmp_path / "book.xlsx"
    with Workbook(str(place)) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate([["id", "amount", "ref"], [1, 1.5, "A"], [2, 2.5, 7]]):
            sheet.write_row(number, 0, row)
    response = await me.post(
        "/api/uploads", params={"name": "book.xlsx"}, content=place.read_bytes()
    )
    assert [column["type"] for column in response.json()["data"]["columns"]] == [
        "int64",
        "double",
        "string",
    ]


async def test_decisions_and_open_items_live_from_run_to_run(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    recipe = {"recipe_id": "monthly", "name": "monthly", "sources": await two(me), "rules": RULES}
    assert (await me.post("/api/recipes", json={"recipe": recipe})).status_code == 201
    async with deployment.working(queues=QUEUES):
        first = await over(me, await start(me, recipe_id="monthly"))
        assert [row["since_run"] for row in await rows(me, first, "open_items")] == [
            first["run_id"]
        ] * 4
        pair = {"kind": "match", "left_key": ["3"], "right_key": ["4"], "comment": "same customer"}
        response = await me.post("/api/recipes/monthly/decisions", json=pair)
        assert response.status_code == 201, response.text
        assert (await me.post("/api/recipes/monthly/decisions", json=pair)).status_code == 409
        note = {"side": "left", "key": ["2"], "label": "dispute", "assignee": "ann"}
        assert (await me.put("/api/recipes/monthly/items", json=note)).status_code == 200
        second = await over(me, await start(me, recipe_id="monthly"))
    assert [
        (row["rule"], row["left_id"], row["right_id"]) for row in await rows(me, second, "matched")
    ] == [
        ("manual", "3", "4"),
        ("exact", "1", "1"),
    ]
    opened = {
        (row["side"], row["key"]): row["runs_open"] for row in await rows(me, second, "open_items")
    }
    assert opened == {("left", "2"): 2, ("right", "2"): 2}
    cleared = {(row["key"], row["outcome"]) for row in await rows(me, second, "cleared_items")}
    assert cleared == {("3", "matched"), ("4", "matched")}
    [noted] = (await me.get("/api/recipes/monthly/items", params={"assignee": "ann"})).json()[
        "data"
    ]
    assert (noted["key"], noted["label"]) == (["2"], "dispute")
    decision = response.json()["data"]["decision_id"]
    assert (await me.delete(f"/api/recipes/monthly/decisions/{decision}")).status_code == 200
    assert (await me.get("/api/recipes/monthly/decisions")).json()["data"] == []
    audited = (await me.get("/api/audit")).json()["data"]
    assert {"item.match", "item.note", "item.take_back"} <= {line["action"] for line in audited}


FLIPPED = [
    ("matched", "/evidence/matched"),
    ("unmatched_left", "/evidence/unmatched_left?format=csv"),
    ("unmatched_left", "/evidence/unmatched_left?format=parquet&limit=1"),
    ("open_items", "/evidence/open_items?format=xlsx"),
    ("manifest.json", "/manifest"),
    ("manifest.json", "/report"),
    ("manifest.json", "/evidence/matched"),
]


async def test_evidence_of_which_a_byte_is_flipped_is_refused_by_its_name(
    deployment: Deployment, me: httpx2.AsyncClient, tmp_path: Path
) -> None:
    recipe = {"recipe_id": "monthly", "name": "monthly", "sources": await two(me), "rules": RULES}
    assert (await me.post("/api/recipes", json={"recipe": recipe})).status_code == 201
    async with deployment.working(queues=QUEUES):
        run = await over(me, await start(me, recipe_id="monthly"))
    folder = tmp_path / "home" / "storage" / "runs" / str(run["run_id"])
    for name, path in FLIPPED:
        [file] = [one for one in folder.rglob("*") if one.is_file() and one.name.startswith(name)]
        written = file.read_bytes()
        for place in (5, len(written) // 2):
            file.chmod(0o644)
            file.write_bytes(written[:place] + bytes([written[place] ^ 1]) + written[place + 1 :])
            refused = await me.get(f"/api/runs/{run['run_id']}{path}")
            assert refused.status_code == 502, (path, place, refused.status_code)
            assert refused.json()["error"]["code"] == "OBJECT_DAMAGED"
            assert file.name in refused.json()["error"]["message"]
        file.write_bytes(written)
        assert (await me.get(f"/api/runs/{run['run_id']}{path}")).status_code == 200


@pytest.mark.parametrize(
    "content", [b"[]", b"1", b"null", b"{}", b"", b'{"format": "penstock-evidence/1"}']
)
async def test_a_manifest_that_is_none_is_refused_by_its_name(
    deployment: Deployment, me: httpx2.AsyncClient, tmp_path: Path, content: bytes
) -> None:
    async with deployment.working(queues=QUEUES):
        run = await over(
            me, await start(me, recipe={"name": "x", "sources": await two(me), "rules": RULES})
        )
    manifest = tmp_path / "home" / "storage" / "runs" / str(run["run_id"]) / "manifest.json"
    manifest.chmod(0o644)
    manifest.write_bytes(content)
    for path in ("manifest", "report", "evidence/matched"):
        refused = await me.get(f"/api/runs/{run['run_id']}/{path}")
        assert refused.json()["error"]["code"] == "OBJECT_DAMAGED"
        assert manifest.name in refused.json()["error"]["message"]


async def test_a_recipe_whose_open_items_were_deleted_says_how_to_go_on(
    deployment: Deployment, me: httpx2.AsyncClient, tmp_path: Path
) -> None:
    recipe = {"recipe_id": "monthly", "name": "monthly", "sources": await two(me), "rules": RULES}
    assert (await me.post("/api/recipes", json={"recipe": recipe})).status_code == 201
    async with deployment.working(queues=QUEUES):
        run = await over(me, await start(me, recipe_id="monthly"))
        folder = tmp_path / "home" / "storage" / "runs" / str(run["run_id"]) / "open_items"
        [items] = folder.iterdir()
        items.unlink()
        failed = await over(me, await start(me, recipe_id="monthly"))
        renamed = {"recipe": recipe | {"recipe_id": "anew"}}
        assert (await me.post("/api/recipes", json=renamed)).status_code == 201
        again = await over(me, await start(me, recipe_id="anew"))
    assert (failed["status"], failed["error"]["code"]) == ("failed", "OBJECT_MISSING")
    assert items.name in failed["error"]["message"]
    assert "another recipe_id" in failed["error"]["hint"]
    assert again["status"] == "completed"


async def test_a_run_whose_upload_was_deleted_names_it(
    deployment: Deployment, me: httpx2.AsyncClient, tmp_path: Path
) -> None:
    sources = await two(me)
    [file] = (tmp_path / "home" / "storage" / "uploads").glob(f"{sources['left']['upload']}*")
    file.unlink()
    async with deployment.working(queues=QUEUES):
        run = await over(
            me, await start(me, recipe={"name": "x", "sources": sources, "rules": RULES})
        )
    assert (run["status"], run["error"]["code"]) == ("failed", "OBJECT_MISSING")
    assert file.name in run["error"]["message"]
    assert "Upload the file again" in run["error"]["hint"]


async def test_a_run_does_not_match_an_upload_that_is_damaged(
    deployment: Deployment, me: httpx2.AsyncClient, tmp_path: Path
) -> None:
    sources = await two(me)
    [file] = (tmp_path / "home" / "storage" / "uploads").glob(f"{sources['left']['upload']}*")
    written = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(written[:40] + bytes([written[40] ^ 1]) + written[41:])
    async with deployment.working(queues=QUEUES):
        run = await over(
            me, await start(me, recipe={"name": "monthly", "sources": sources, "rules": RULES})
        )
    assert (run["status"], run["error"]["code"]) == ("failed", "OBJECT_DAMAGED")
    assert file.name in run["error"]["message"]


async def test_the_setting_limits_how_far_candidates_outnumber_records(
    database: str,
    tmp_path: Path,
) -> None:
    """1,500 records a side with one reference: 2.25 million candidates."""
    same = b"id,ref\n" + b"".join(b"%d,A\n" % number for number in range(1500))
    rules = [{"name": "crowd", "conditions": [{"left": "ref", "op": "eq", "right": "ref"}]}]
    tight = settings(tmp_path / "home").model_copy(update={"reconcile_candidates_per_row": 1})
    headers = {"Authorization": "Bearer operator"}
    async with (
        running_deployment(database, tight) as deployment,
        httpx2.AsyncClient(base_url=deployment.http.base_url, headers=headers, timeout=60) as me,
    ):
        side = {"upload": await upload(me, "same.csv", same), "primary_key": ["id"]}
        recipe = {"name": "crowd", "sources": {"left": side, "right": side}, "rules": rules}
        async with deployment.working(queues=QUEUES):
            stopped = await over(me, await start(me, recipe=recipe))
            allowed = await over(
                me, await start(me, recipe={**recipe, "limits": {"candidates_per_row": 750}})
            )
    assert stopped["error"]["code"] == "RECONCILE_TOO_MANY"
    assert "PENSTOCK_RECONCILE_CANDIDATES_PER_ROW" in stopped["error"]["hint"]
    assert allowed["status"] == "completed", allowed["error"]
    assert allowed["rules"][0]["matches"] == 1500


async def test_a_scratch_disk_that_is_full_is_named_with_its_setting(
    deployment: Deployment, me: httpx2.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = b"id,ref,amount\n" + b"".join(
        b"%d,R%d,1.00\n" % (n, n * 7919 % 99_991) for n in range(60_000)
    )
    side = {"upload": await upload(me, "many.csv", many), "primary_key": ["id"]}
    recipe = {
        "name": "many",
        "engine": "datafusion",
        "sources": {"left": side, "right": side},
        "rules": RULES,
    }
    async with deployment.working(queues=QUEUES):
        with small_disk(tmp_path / "small", 300_000) as folder:
            monkeypatch.setattr(tempfile, "tempdir", str(folder))
            run = await over(me, await start(me, recipe=recipe))
            monkeypatch.undo()
    assert (run["status"], run["error"]["code"]) == ("failed", "SCRATCH_FULL")
    assert str(folder) in run["error"]["message"]
    assert "TMPDIR" in run["error"]["hint"]


async def test_rules_are_suggested_and_a_recipe_runs_by_the_clock(
    deployment: Deployment, me: httpx2.AsyncClient
) -> None:
    sources = await two(me)
    response = await me.post("/api/recipes/suggest", json=sources)
    assert response.status_code == 200, response.text
    rules = response.json()["data"]["rules"]
    assert rules[0]["conditions"][0]["op"] == "eq"
    recipe = {"recipe_id": "daily", "name": "daily", "sources": sources, "rules": RULES}
    assert (await me.post("/api/recipes", json={"recipe": recipe})).status_code == 201
    planned = await me.put("/api/recipes/daily/schedule", json={"cron": "0 3 * * *"})
    assert planned.status_code == 200, planned.text
    job = {"kind": "run_start", "payload": {"recipe_id": "daily"}}
    async with deployment.working(queues=QUEUES):
        assert (await me.post("/api/jobs", json=job)).status_code in (201, 202)

        async def ran() -> bool:
            listed = (await me.get("/api/runs", params={"recipe_id": "daily"})).json()["data"]
            return [run["status"] for run in listed] == ["completed"]

        await until(ran)
