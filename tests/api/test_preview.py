"""Recipe previews, rule suggestions from manual matches, and paged evidence."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from structlog.testing import capture_logs

from penstock.kit.errors import InvalidInput
from penstock.reconcile.evidence.reader import EvidenceReader
from penstock.reconcile.match_sql.queries import checked
from penstock.reconcile.matching.decided import Decided
from penstock.reconcile.recipes import preview_limits, validation
from penstock.reconcile.recipes.preview import preview
from penstock.reconcile.runs import service as reconcile_desk
from penstock.reconcile.uploads.service import Upload, Uploads
from penstock.storage.object_store import open_store
from tests.api.test_runs import RULES, deployment, fill, me, sides, two, upload  # noqa: F401 - fixtures
from tests.graphs.deployment import Deployment, postgres, postgres_secrets
from tests.reconcile.match_run import recipe

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2
    from sqlglot import exp

    from penstock.reconcile.recipes.model import Side


async def tried(me: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:  # noqa: F811
    answer = await me.post("/api/recipes/preview", json=body)
    assert answer.status_code == 200, answer.text
    preview: dict[str, Any] = answer.json()["data"]
    return preview


async def test_a_preview_shows_matches_and_breaks_and_leaves_nothing(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
) -> None:
    document = {"name": "monthly", "sources": await two(me), "rules": RULES}
    before = await deployment.files()
    with capture_logs() as logs:
        seen = await tried(me, recipe=document)
    [event] = [event for event in logs if event["event"] == "statement"]
    assert (event["surface"], event["author"], len(event["statement_sha256"])) == (
        "recipe",
        "operator",
        64,
    )
    assert [(row["left_id"], row["right_id"]) for row in seen["matched"]] == [("1", "1")]
    assert [(row["ref"], row["reason"]) for row in seen["unmatched_left"]] == [
        ("B", "amount_out_of_tolerance"),
        ("C", "no_key"),
    ]
    assert seen["totals"]["right"]["unmatched"] == 2
    assert (await me.get("/api/runs")).json()["data"] == []
    assert await deployment.files() == before
    first = await tried(me, recipe=document, rows=1)
    assert (first["totals"]["left"]["rows"], first["totals"]["right"]["rows"]) == (1, 1)


async def test_a_preview_of_sources_takes_filters_and_parameters(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    warehouse: str,
) -> None:
    await fill(warehouse, 100)
    await deployment.graphs.sources.add(
        name="db",
        kind="postgres",
        owner="me",
        config=postgres(warehouse),
        secrets=postgres_secrets(warehouse),
    )
    document = {
        "name": "scoped",
        "sources": sides(filters=[{"column": "id", "op": "lte", "value": {"parameter": "last"}}]),
        "rules": RULES,
        "parameters": {"last": {"type": "number"}},
    }
    seen = await tried(me, recipe=document, parameters={"last": 7})
    assert seen["totals"]["left"] | {"amounts": {}} == {
        "rows": 7,
        "matched": 7,
        "unmatched": 0,
        "null_keys": 0,
        "amounts": {},
        "reasons": {},
    }
    missing = await me.post("/api/recipes/preview", json={"recipe": document})
    assert (missing.status_code, missing.json()["error"]["details"]["parameter"]) == (422, "last")


async def test_a_preview_filters_uploads_too(me: httpx2.AsyncClient) -> None:  # noqa: F811
    sources = await two(me)
    sources["left"]["filters"] = [{"column": "ref", "op": "in", "value": ["B", "C"]}]
    seen = await tried(me, recipe={"name": "x", "sources": sources, "rules": RULES}, rows=1)
    assert [row["ref"] for row in seen["unmatched_left"]] == ["B"]
    sources["left"]["filters"] = [{"column": "nothing", "op": "eq", "value": "B"}]
    wrong = await me.post(
        "/api/recipes/preview", json={"recipe": {"name": "x", "sources": sources, "rules": RULES}}
    )
    assert wrong.status_code == 422
    assert "nothing" in wrong.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [{}, {"recipe_id": "a", "recipe": {}}, {"recipe": {"name": "x"}}, {"rows": 5001}]
)
async def test_a_preview_of_nothing_is_refused(
    me: httpx2.AsyncClient,  # noqa: F811
    body: dict[str, Any],
) -> None:
    assert (await me.post("/api/recipes/preview", json=body)).status_code == 422


async def test_a_preview_that_takes_too_long_is_stopped() -> None:
    rows = pa.table({"id": range(5000), "ref": [f"{i:064d}" for i in range(5000)]})
    rules = [{"name": "slow", "conditions": [{"left": "ref", "op": "similar", "right": "ref"}]}]
    with pytest.raises(InvalidInput, match=r"more than 0\.5 s"):
        await preview(validation.read(recipe(rules=rules)), rows, rows, Decided(), seconds=0.5)


async def test_what_people_matched_teaches_rules_and_holds_in_a_preview(
    me: httpx2.AsyncClient,  # noqa: F811
) -> None:
    left = b"id,ref,label,amount\n" + b"".join(
        b"%d,x%d,L-%d,%d.00\n" % (i, i, i, i) for i in range(20)
    )
    right = b"id,ref,label,amount\n" + b"".join(
        b"%d,x%d,l %d,%d.50\n" % (i + 100, i + 1, i, i) for i in range(20)
    )
    sources = {
        "left": {"upload": await upload(me, "l.csv", left), "primary_key": "id"},
        "right": {"upload": await upload(me, "r.csv", right), "primary_key": "id"},
    }
    document = {"recipe_id": "taught", "name": "taught", "sources": sources, "rules": RULES}
    assert (await me.post("/api/recipes", json={"recipe": document})).status_code == 201
    by_statistics = (await me.post("/api/recipes/suggest", json={"recipe_id": "taught"})).json()[
        "data"
    ]
    assert by_statistics["pairs"] == 0
    stray = {"kind": "match", "left_key": ["nobody"], "right_key": ["nobody"]}
    assert (await me.post("/api/recipes/taught/decisions", json=stray)).status_code == 201
    for i in range(4):
        decision = {"kind": "match", "left_key": [str(i)], "right_key": [str(i + 100)]}
        assert (await me.post("/api/recipes/taught/decisions", json=decision)).status_code == 201
    taught = (await me.post("/api/recipes/suggest", json={"recipe_id": "taught"})).json()["data"]
    assert taught["pairs"] == 4
    key, amount = taught["rules"][0]["conditions"]
    assert (key["left"], key["op"], key["right"]) == ("label", "normalized", "label")
    assert amount["absolute"] == "0.500000"
    assert "confirmed pairs" in taught["why"][0]
    seen = await tried(me, recipe_id="taught")
    assert [
        (row["left_id"], row["rule"]) for row in seen["matched"] if row["rule"] == "manual"
    ] == [(str(i), "manual") for i in range(4)]


@pytest.mark.parametrize("body", [{}, {"left": {"upload": "0" * 32, "primary_key": "id"}}])
async def test_a_suggestion_for_one_side_or_none_is_refused(
    me: httpx2.AsyncClient,  # noqa: F811
    body: dict[str, Any],
) -> None:
    refused = await me.post("/api/recipes/suggest", json=body)
    assert refused.status_code == 422
    assert "recipe_id" in refused.json()["error"]["details"]["hint"]


async def test_the_first_rows_of_evidence_are_decoded_without_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is streamed once for its digest, and never held whole."""
    rows = pa.table({"id": range(400_000), "text": [f"{i:032x}" for i in range(400_000)]})
    pq.write_table(rows, tmp_path / "m.parquet", row_group_size=100_000)
    store = open_store(f"file://{tmp_path}")
    data = (tmp_path / "m.parquet").read_bytes()
    await store.create("runs/1/m.parquet", data)
    read = 0
    real = store.get_range

    async def counted(key: str, start: int, length: int) -> bytes:
        nonlocal read
        read += length
        return await real(key, start, length)

    async def never(key: str) -> bytes:
        raise AssertionError(key)

    monkeypatch.setattr(store, "get_range", counted)
    monkeypatch.setattr(store, "get", never)
    file = {"table": "matched", "name": "m.parquet", "size": len(data), "rows": 400_000}
    sha256 = hashlib.sha256(data).hexdigest()
    manifest = {"files": [{**file, "sha256": sha256}], "run": {"run_id": 1}}
    _, some = await EvidenceReader(store, manifest).download("matched", "csv", 3)
    assert b"".join([piece async for piece in some]).count(b"\n") == 4
    assert read < len(data) / 2
    _, everything = await EvidenceReader(store, manifest).download("matched", "csv")
    assert b"".join([piece async for piece in everything]).count(b"\n") == 400_001


async def test_a_preview_shows_as_many_rows_as_one_answer_takes(
    me: httpx2.AsyncClient,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two hundred rows of ten thousand columns are millions of values in the control plane's
    loop.
    """
    data = b"id,ref,amount\n" + b"".join(b"%d,x%d,1\n" % (i, i) for i in range(40))
    sources: dict[str, Any] = {
        side: {"upload": await upload(me, f"{side}.csv", data), "primary_key": "id"}
        for side in ("left", "right")
    }
    sources["right"]["filters"] = [{"column": "ref", "op": "eq", "value": "x0"}]
    body = {"recipe": {"name": "x", "sources": sources, "rules": RULES}}
    whole = (await tried(me, **body))["unmatched_left"]
    assert len(whole) == 39
    monkeypatch.setattr(preview_limits, "MAX_CELLS", 39 * len(whole[0]))
    assert len((await tried(me, **body))["unmatched_left"]) == 39
    monkeypatch.setattr(preview_limits, "MAX_CELLS", 39 * len(whole[0]) - 1)
    assert len((await tried(me, **body))["unmatched_left"]) == 19


async def test_a_preview_and_a_suggestion_hold_rows_only_while_they_have_a_turn(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of an upload are as large in memory as those of a source, whoever waits for a turn has
    none."""
    sampled: list[str] = []
    sample = Uploads.sample

    async def noted(self: Uploads, read: Upload, side: Side, rows: int) -> pa.Table:
        sampled.append(read.name)
        return await sample(self, read, side, rows)

    monkeypatch.setattr(Uploads, "sample", noted)
    sources = await two(me)
    turns = deployment.graphs.sources.turns
    monkeypatch.setattr(turns, "_patience", 0.01)
    async with AsyncExitStack() as stack:
        for _ in range(4):
            await stack.enter_async_context(turns.slot("operator"))
        recipe = {"name": "x", "sources": sources, "rules": RULES}
        tried_now = await me.post("/api/recipes/preview", json={"recipe": recipe})
        suggested = await me.post("/api/recipes/suggest", json=sources)
        assert (tried_now.status_code, suggested.status_code, sampled) == (429, 429, [])
    assert (await me.post("/api/recipes/suggest", json=sources)).status_code == 200
    assert len(sampled) == 2


async def test_the_sql_of_a_recipe_is_read_away_from_the_event_loop(
    me: httpx2.AsyncClient,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten thousand words take half a second, in which nobody else is answered."""
    on_loop: list[bool] = []

    def noted(sql: str) -> exp.Query:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            on_loop.append(False)
        else:
            on_loop.append(True)
        return checked(sql)

    monkeypatch.setattr(reconcile_desk, "checked", noted)
    sql = (
        "SELECT l.id AS left_id, r.id AS right_id FROM left_src l JOIN right_src r ON l.ref = r.ref"
    )
    recipe = {"name": "x", "sources": await two(me), "match_sql": sql}
    await tried(me, recipe=recipe)
    assert (await me.post("/api/recipes/validate", json={"recipe": recipe})).status_code == 200
    assert (await me.post("/api/runs", json={"recipe": recipe})).status_code == 202
    assert on_loop == [False, False, False]
