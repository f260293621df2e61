"""Runs over files that are read in place, without staging."""

from __future__ import annotations

import gzip
import io
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.reconcile.recipes.model import Side
from penstock.reconcile.staging.native_files import take
from penstock.sources.errors import SourceUnavailable
from penstock.sources.registry import open_source
from tests.api.test_runs import PAYMENTS, QUEUES, RULES, deployment, me, over, rows, start, upload  # noqa: F401 - fixtures
from tests.sources.test_files import at
from tests.storage.conftest import gcs, remote, s3  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from tests.graphs.deployment import Deployment
    from tests.storage.conftest import Place

AMOUNTS = pa.decimal128(18, 4)


def ledger(*ids: int) -> pa.Table:
    amounts = pa.array([Decimal(10 * i) for i in ids], AMOUNTS)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "ref": ["ABCDE"[i - 1] for i in ids], "amount": amounts}
    )


def folder(tmp_path: Path) -> Path:
    """A table of two Parquet files in folders that look like partitions, and a gzipped CSV."""
    for year, ids in ((2023, (1, 2)), (2024, (3,))):
        part = tmp_path / "files" / "ledger" / f"year={year}"
        part.mkdir(parents=True)
        pq.write_table(ledger(*ids), part / "part.parquet")
    (tmp_path / "files" / "bank.csv.gz").write_bytes(gzip.compress(PAYMENTS))
    return tmp_path / "files"


def sides(**left: Any) -> dict[str, Any]:
    return {
        "left": {"source": "files", "table": "ledger", "primary_key": "id", **left},
        "right": {"source": "files", "table": "bank", "primary_key": "id"},
    }


async def run_of(deployment: Deployment, me: httpx2.AsyncClient, **recipe: Any) -> dict[str, Any]:  # noqa: F811
    async with deployment.working(queues=QUEUES):
        return await over(me, await start(me, recipe={"name": "native", "rules": RULES, **recipe}))


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
async def test_parquet_and_csv_of_a_folder_are_matched_without_staging(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    tmp_path: Path,
    engine: str,
) -> None:
    where = {
        "url": f"file://{folder(tmp_path)}",
        "tables": {"ledger": "ledger/**/*.parquet", "bank": "*.csv.gz"},
    }
    response = await me.post(
        "/api/sources", json={"alias": "files", "type": "files", "config": where}
    )
    assert response.json()["data"]["staged"] is False
    ended = await run_of(deployment, me, sources=sides(), engine=engine)
    assert ended["status"] == "completed", ended["error"]
    assert [ended["totals"][side]["rows"] for side in ("left", "right")] == [3, 3]
    assert [row["left_id"] for row in await rows(me, ended, "matched")] == [1]
    assert "year" not in (await rows(me, ended, "unmatched_left"))[0]
    assert ended["progress"]["jobs"] == 1
    assert not any(key.startswith("staging/") for key in await deployment.files())
    inputs = (await me.get(f"/api/runs/{ended['run_id']}/manifest")).json()["data"]["inputs"]
    assert (
        inputs["left"]["rows"],
        len(inputs["left"]["sha256"]),
        len(inputs["right"]["sha256"]),
    ) == (
        3,
        2,
        1,
    )


async def test_two_runs_over_the_same_files_have_one_digest(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    tmp_path: Path,
) -> None:
    await me.post(
        "/api/sources",
        json={"alias": "files", "type": "files", "config": {"url": f"file://{folder(tmp_path)}"}},
    )
    first = await run_of(deployment, me, sources=sides())
    (tmp_path / "files" / "bank.csv.gz").touch()
    second = await run_of(deployment, me, sources=sides())
    assert first["evidence_sha256"] == second["evidence_sha256"] is not None


@pytest.mark.parametrize("table", ["ledger", "bank"])
async def test_filters_scope_files_and_a_wrong_one_is_an_error(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    tmp_path: Path,
    table: str,
) -> None:
    await me.post(
        "/api/sources",
        json={"alias": "files", "type": "files", "config": {"url": f"file://{folder(tmp_path)}"}},
    )
    parameters = {"refs": {"type": "text", "default": "B"}}
    filtered = sides(
        table=table, filters=[{"column": "ref", "op": "eq", "value": {"parameter": "refs"}}]
    )
    ended = await run_of(deployment, me, sources=filtered, parameters=parameters)
    assert ended["totals"]["left"]["rows"] == 1, ended["error"]
    for wrong in (
        {"column": "nothing", "op": "eq", "value": 1},
        {"column": "ref", "op": "gt", "value": 1.5},
    ):
        failed = await run_of(deployment, me, sources=sides(table=table, filters=[wrong]))
        assert failed["status"] == "failed"
        assert wrong["column"] in failed["error"]["message"]


async def test_a_failed_run_over_files_is_tried_again_without_staging(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    tmp_path: Path,
) -> None:
    await me.post(
        "/api/sources",
        json={"alias": "files", "type": "files", "config": {"url": f"file://{folder(tmp_path)}"}},
    )
    run = await start(me, recipe={"name": "native", "rules": RULES, "sources": sides()})
    await me.post(f"/api/runs/{run['run_id']}/cancel")
    again = (await me.post(f"/api/runs/{run['run_id']}/retry")).json()["data"]
    async with deployment.working(queues=QUEUES):
        ended = await over(me, again)
    assert (ended["status"], ended["progress"]["jobs"]) == ("completed", 1), ended["error"]


async def test_objects_of_s3_and_gcs_are_read_by_the_match_itself(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    remote: Place,  # noqa: F811
) -> None:
    out = io.BytesIO()
    pq.write_table(ledger(1, 2, 3), out)
    await remote.open().create("ledger/part.parquet", out.getvalue())
    config, secrets = at(remote)
    await deployment.graphs.sources.add(
        name="files", kind="files", owner="me", config=config, secrets=secrets
    )
    right = {"upload": await upload(me, "payments.csv", PAYMENTS), "primary_key": "id"}
    ended = await run_of(deployment, me, sources={**sides(), "right": right})
    assert ended["status"] == "completed", ended["error"]
    assert (ended["totals"]["left"]["matched"], ended["progress"]["jobs"]) == (1, 1)


async def test_a_file_that_is_replaced_while_it_is_matched_is_noticed(tmp_path: Path) -> None:
    where = folder(tmp_path)
    side = Side(source="files", table="ledger", primary_key=("id",))
    async with open_source("files", {"url": f"file://{where}"}, {}) as source:
        taken = await take(source, side, tmp_path / "copy.parquet")
    taken.check()
    pq.write_table(ledger(4, 5), where / "ledger" / "year=2024" / "part.parquet")
    with pytest.raises(SourceUnavailable, match="changed while it was read"):
        taken.check()
    assert not (tmp_path / "copy.parquet").exists()
