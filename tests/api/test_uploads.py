"""Uploads over HTTP: hostile files, quota, deletion and expiry."""

from __future__ import annotations

import asyncio
import io
import os
from typing import TYPE_CHECKING, Any

import pytest
from xlsxwriter import Workbook

from penstock.kit.errors import PayloadTooLarge
from penstock.reconcile.recipes.model import Side
from penstock.reconcile.uploads import service
from penstock.reconcile.uploads.service import UploadExpiry
from tests.api.running_api import Api, data_of, running_api
from tests.reconcile.match_run import recipe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    import httpx2

    from tests.api.control_plane import Edge

CSV = b"id,ref\n1,A\n2,B\n"
RULES = [{"name": "r", "conditions": [{"left": "ref", "op": "eq", "right": "ref"}]}]


@pytest.fixture
async def api(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Api]:
    limits = {
        "upload_quota_files": 3,
        "upload_max_mb": 1,
        "uploads_at_once": 3,
        "uploads_at_once_per_user": 2,
    }
    async with running_api(database, edge, tmp_path / "home", **limits) as api:
        yield api


async def upload(
    client: httpx2.AsyncClient, data: bytes = CSV, name: str = "x.csv", **query: str
) -> httpx2.Response:
    return await client.post("/api/uploads", params={"name": name} | query, content=data)


def refused(answer: httpx2.Response, status: int = 422) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


def files(tmp_path: Path) -> list[str]:
    return [file.name for file in (tmp_path / "home" / "storage").glob("uploads/*.parquet")]


async def test_a_small_workbook_of_two_far_cells_is_refused_and_the_control_plane_lives(
    api: Api,
) -> None:
    out = io.BytesIO()
    with Workbook(out) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write("A1", "a")
        sheet.write("XFD1048576", "b")
    error = refused(await upload(api.ann, out.getvalue(), "x.xlsx"), 413)
    assert error["code"] == "PAYLOAD_TOO_LARGE"
    assert "row 1,048,576 and column 16,384" in error["message"]
    assert (await api.ann.get("/health")).status_code == 200


@pytest.mark.parametrize("encoding", ["undefined", "idna", "punycode", "rot13", "x" * 40])
async def test_what_is_no_encoding_of_files_is_a_mistake_of_the_caller(
    api: Api, encoding: str
) -> None:
    assert "no encoding" in refused(await upload(api.ann, encoding=encoding))["message"]


async def test_an_upload_may_be_so_large_and_no_larger_however_it_is_sent(api: Api) -> None:
    largest = b"a,b\n" + b"1,2\n" * (1024**2 // 4 - 1)
    assert len(largest) == 1024**2
    data_of(await upload(api.ann, largest), 201)

    async def pieces() -> AsyncIterator[bytes]:
        yield largest
        yield b"x"

    refused(await upload(api.ann, largest + b"x"), 413)
    answer = await api.ann.post("/api/uploads?name=x.csv", content=pieces())
    assert refused(answer, 413)["code"] == "PAYLOAD_TOO_LARGE"


@pytest.mark.parametrize("filters", [[], [{"column": "id", "op": "neq", "value": "y"}]])
async def test_the_first_rows_of_an_upload_may_take_so_much_memory_and_no_more(
    api: Api, filters: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    upload_id = data_of(await upload(api.ann, b"id\n" + b"x" * 5000 + b"\n"), 201)["upload_id"]
    assert api.services.reconciliation is not None
    stored = api.services.reconciliation.service.uploads
    side = Side.model_validate({"upload": upload_id, "primary_key": ["id"], "filters": filters})
    monkeypatch.setattr(service, "SAMPLE_BYTES", 8000)
    assert (await stored.sample(await stored.get(upload_id), side, 10)).num_rows == 1
    monkeypatch.setattr(service, "SAMPLE_BYTES", 5000)
    with pytest.raises(PayloadTooLarge, match="first rows of the upload take more than 5,000"):
        await stored.sample(await stored.get(upload_id), side, 10)


async def test_a_user_may_have_so_many_uploads_and_no_more(api: Api, tmp_path: Path) -> None:
    answers = await asyncio.gather(*(upload(api.ann) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 201, 201, 409, 409]
    error = refused(await upload(api.ann), 409)
    assert error["code"] == "UPLOAD_QUOTA_EXCEEDED"
    assert error["details"]["limit"] == 3
    assert len(files(tmp_path)) == 3
    assert (await upload(api.ben)).status_code == 201
    usage = data_of(await api.ann.get("/api/uploads/usage"))
    assert (usage["files"], usage["max_files"], usage["max_file_bytes"]) == (3, 3, 1024**2)


async def test_the_uploads_of_a_user_may_take_so_many_bytes_and_no_more(
    database: str, edge: Edge, tmp_path: Path
) -> None:
    half = b"id\n" + os.urandom(290_000).hex().encode() + b"\n"
    async with running_api(database, edge, tmp_path / "home", upload_quota_mb=1) as api:
        sizes = [data_of(await upload(api.ann, half), 201)["size_bytes"] for _ in range(3)]
        assert sum(sizes) <= 1024**2 < sum(sizes) + sizes[0]
        error = refused(await upload(api.ann, half), 409)
        assert error["details"] == {
            "bytes": sum(sizes),
            "limit": 1024**2,
            "hint": "Delete uploads that you no longer need: DELETE /api/uploads/{upload_id}.",
        }
        assert len(files(tmp_path)) == 3


async def test_an_upload_is_deleted_with_its_file_by_its_owner_alone(
    api: Api, tmp_path: Path
) -> None:
    upload_id = data_of(await upload(api.ann), 201)["upload_id"]
    assert files(tmp_path) == [f"{upload_id}.parquet"]
    refused(await api.ben.delete(f"/api/uploads/{upload_id}"), 403)
    assert data_of(await api.ann.delete(f"/api/uploads/{upload_id}"))["deleted"] is True
    assert files(tmp_path) == []
    refused(await api.ann.delete(f"/api/uploads/{upload_id}"), 404)
    refused(await api.ann.get(f"/api/uploads/{upload_id}"), 404)


async def test_users_list_their_own_uploads_and_admins_all(api: Api) -> None:
    first = data_of(await upload(api.ann), 201)["upload_id"]
    second = data_of(await upload(api.ann), 201)["upload_id"]
    other = data_of(await upload(api.ben), 201)["upload_id"]
    answer = await api.ann.get("/api/uploads", params={"limit": 1})
    assert [row["upload_id"] for row in data_of(answer)] == [second]
    assert answer.json()["meta"]["total"] == 2
    everything = {
        row["upload_id"]: row["owner"] for row in data_of(await api.ada.get("/api/uploads"))
    }
    assert everything == {first: "ann", second: "ann", other: "ben"}


async def start(api: Api, upload_id: str) -> int:
    side = {"upload": upload_id, "primary_key": ["id"]}
    document = recipe(sources={"left": side, "right": side}, rules=RULES)
    run = data_of(await api.ann.post("/api/runs", json={"recipe": document}), 202)
    number: int = run["run_id"]
    return number


async def test_an_upload_that_a_run_is_about_to_read_is_not_deleted(api: Api) -> None:
    upload_id = data_of(await upload(api.ann), 201)["upload_id"]
    run_id = await start(api, upload_id)
    error = refused(await api.ann.delete(f"/api/uploads/{upload_id}"), 409)
    assert error["code"] == "INVALID_STATE"
    data_of(await api.ann.post(f"/api/runs/{run_id}/cancel"))
    data_of(await api.ann.delete(f"/api/uploads/{upload_id}"))


async def test_an_upload_is_deleted_so_many_days_after_its_last_use(
    api: Api, tmp_path: Path, move_time: Callable[[str], Awaitable[None]]
) -> None:
    loop = next(loop for loop in api.services.loops if isinstance(loop, UploadExpiry))
    unused = data_of(await upload(api.ann), 201)["upload_id"]
    used = data_of(await upload(api.ann), 201)["upload_id"]
    running = data_of(await upload(api.ann), 201)["upload_id"]
    read_by = await start(api, running)
    await move_time("20 days")
    data_of(await api.ann.post(f"/api/runs/{await start(api, used)}/cancel"))
    await move_time("29 days 23 hours")
    assert (await loop.run_once()).files == 0
    await move_time("30 days 1 minute")
    assert (await loop.run_once()).files == 1
    assert sorted(files(tmp_path)) == sorted(f"{name}.parquet" for name in (used, running))
    refused(await api.ann.get(f"/api/uploads/{unused}"), 404)
    await move_time("90 days")
    assert (await loop.run_once()).files == 1
    assert files(tmp_path) == [f"{running}.parquet"], "its run is not over"
    await api.sql("UPDATE penstock.run SET status = 'failed' WHERE run_id = $1", read_by)
    assert (await loop.run_once()).total == 1
    assert files(tmp_path) == []


async def test_a_user_sends_as_many_files_at_once_as_allowed_and_not_one_more(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are on their way are in no quota, and lie on temporary disk."""
    assert api.services.reconciliation is not None
    turns = api.services.reconciliation.service.uploads.turns
    monkeypatch.setattr(turns, "_patience", 0.01)
    async with turns.slot("ann"):
        data_of(await upload(api.ann), 201)
        async with turns.slot("ann"):
            error = refused(await upload(api.ann), 429)
            assert error["message"] == "ann has 2 uploads under way, which is the most."
            data_of(await upload(api.ben), 201)
    data_of(await upload(api.ann), 201)


async def test_a_process_takes_as_many_files_at_once_as_allowed_and_not_one_more(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api.services.reconciliation is not None
    turns = api.services.reconciliation.service.uploads.turns
    monkeypatch.setattr(turns, "_patience", 0.01)
    async with turns.slot("cleo"), turns.slot("ben"):
        data_of(await upload(api.ann), 201)
        async with turns.slot("ben"):
            assert (
                refused(await upload(api.ann), 429)["message"] == "Too many uploads are under way."
            )
