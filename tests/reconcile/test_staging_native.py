"""Files read in place: in folders and object stores, in pieces, and only in the listed version."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from penstock.reconcile.recipes.model import Side
from penstock.reconcile.staging import native_files
from penstock.sources.contract import Limits
from penstock.sources.errors import SourceQueryError, SourceUnavailable
from penstock.sources.registry import open_source
from tests.api.test_runs import QUEUES, RULES, deployment, me, over, start  # noqa: F401 - fixtures
from tests.sources.test_files import at
from tests.storage.conftest import gcs, remote, s3  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from tests.graphs.deployment import Deployment
    from tests.storage.conftest import Place

ROWS = 3000
TABLES = {"ledger": "ledger/**/*.parquet", "bank": "bank-*.csv.gz"}
LEDGER = Side(source="files", table="ledger", primary_key=("id",))
SCOPED = {"filters": [{"column": "id", "op": "lt", "value": 2500}]}


def objects() -> dict[str, bytes]:
    """A ledger in three folders of Parquet, and a bank in two gzipped CSV files, one of which lacks
    every tenth."""
    contents: dict[str, bytes] = {}
    for number, start_at in enumerate(range(0, ROWS, ROWS // 3)):
        ids = range(start_at, start_at + ROWS // 3)
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "ref": [f"R{i}" for i in ids],
                "amount": ["1.00" for _ in ids],
            }
        )
        out = io.BytesIO()
        pq.write_table(table, out, row_group_size=100)
        contents[f"ledger/month={number}/part.parquet"] = out.getvalue()
    for half, numbers in enumerate((range(ROWS // 2), range(ROWS // 2, ROWS))):
        lines = [f'{i},R{i},1.0{i % 5},"two\nlines"' for i in numbers if i % 10]
        contents[f"bank-{half}.csv.gz"] = gzip.compress(
            "\n".join(["id,ref,amount,note", *lines]).encode()
        )
    return contents


async def put(place: Place) -> None:
    store = place.open()
    for key, data in objects().items():
        await store.create(key, data)


def folder(tmp_path: Path) -> Path:
    for key, data in objects().items():
        (file := tmp_path / "files" / key).parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return tmp_path / "files"


async def ended(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    source: str,
) -> tuple[dict[str, Any], dict[str, Any]]:
    left = {"source": source, "table": "ledger", "primary_key": "id", **SCOPED}
    sides = {"left": left, "right": {"source": source, "table": "bank", "primary_key": "id"}}
    async with deployment.working(queues=QUEUES):
        run = await over(
            me, await start(me, recipe={"name": "native", "rules": RULES, "sources": sides})
        )
    assert run["status"] == "completed", run["error"]
    manifest = (await me.get(f"/api/runs/{run['run_id']}/manifest")).json()["data"]
    return run, manifest


async def test_objects_give_the_evidence_that_the_same_files_give(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    remote: Place,  # noqa: F811
    tmp_path: Path,
) -> None:
    await put(remote)
    config, secrets = at(remote)
    here = {"url": f"file://{folder(tmp_path)}", "tables": TABLES}
    await deployment.graphs.sources.add(
        name="here", kind="files", owner="me", config=here, secrets={}
    )
    await deployment.graphs.sources.add(
        name="there", kind="files", owner="me", config=config | {"tables": TABLES}, secrets=secrets
    )
    (_, local), (run, far) = [await ended(deployment, me, source) for source in ("here", "there")]
    assert {side: far["totals"][side]["rows"] for side in ("left", "right")} == {
        "left": 2500,
        "right": 2700,
    }
    assert far["totals"] == local["totals"]
    assert far["files"] == local["files"]
    assert run["progress"]["jobs"] == 1
    entries = far["inputs"]["left"]["objects"]
    assert [entry["path"] for entry in entries] == [
        f"ledger/month={n}/part.parquet" for n in range(3)
    ]
    assert all(entry["etag"] and entry["size"] for entry in entries)
    assert len(far["inputs"]["right"]["objects"]) == len(local["inputs"]["right"]["sha256"]) == 2


async def test_pieces_are_read_beside_each_other_and_come_in_order(
    remote: Place,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native_files, "PIECES", Limits(chunk_bytes=1024, max_chunks=12))
    await put(remote)
    config, secrets = at(remote)
    at_once: list[int] = []
    reading: set[str] = set()
    original = native_files._piece

    async def watched(source: Any, chunk: Any, schema: pa.Schema, file: Path) -> int:
        reading.add(file.name)
        at_once.append(len(reading))
        try:
            return await original(source, chunk, schema, file)
        finally:
            reading.discard(file.name)

    monkeypatch.setattr(native_files, "_piece", watched)
    async with open_source("files", config | {"tables": TABLES}, secrets) as source:
        taken = await native_files.take(source, LEDGER, tmp_path / "copy.parquet")
    assert (len(taken.files), max(at_once)) == (12, native_files.READERS)
    rows = pa.concat_tables([pq.read_table(file) for file in taken.files])
    assert rows["id"].to_pylist() == list(range(ROWS))


async def test_an_object_that_is_replaced_while_it_is_read_is_an_error(
    remote: Place,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await put(remote)
    config, secrets = at(remote)
    original = native_files._copy

    async def later(*args: Any) -> int:
        store = remote.open()
        await store.delete(["ledger/month=2/part.parquet"])
        await store.create("ledger/month=2/part.parquet", objects()["ledger/month=0/part.parquet"])
        return await original(*args)

    monkeypatch.setattr(native_files, "_copy", later)
    async with open_source("files", config | {"tables": TABLES}, secrets) as source:
        with pytest.raises(
            SourceUnavailable, match=r"month=2/part.parquet has changed since it was listed"
        ):
            await native_files.take(source, LEDGER, tmp_path / "copy.parquet")


async def test_a_folder_without_a_file_of_the_table_is_an_error_that_names_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "ledger.csv").write_text("id,ref,amount\n")
    async with open_source("files", {"url": f"file://{tmp_path}"}, {}) as source:
        taken = await native_files.take(source, LEDGER, tmp_path / "copy.parquet")
        assert taken.manifest_entry["rows"] == 0
        with pytest.raises(Exception, match="There is no table bank"):
            await native_files.take(
                source, LEDGER.model_copy(update={"table": "bank"}), tmp_path / "other.parquet"
            )


@pytest.mark.parametrize("name", ["ledger.csv", "ledger.parquet"])
async def test_a_filter_over_files_reads_the_column_that_it_names_in_its_case(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    tmp_path: Path,
    name: str,
) -> None:
    """Filtered by the other column there would be no record."""
    table = pa.table(
        {"id": ["1", "2"], "ref": ["x", "x"], "REF": ["A", "B"], "amount": ["1.00", "1.00"]}
    )
    (tmp_path / "files").mkdir()
    if name.endswith("csv"):
        csv.write_csv(table, tmp_path / "files" / name)
    else:
        pq.write_table(table, tmp_path / "files" / name)
    config = {"url": f"file://{tmp_path / 'files'}"}
    await deployment.graphs.sources.add(
        name="files", kind="files", owner="me", config=config, secrets={}
    )
    scoped = [{"column": "REF", "op": "eq", "value": "B"}]
    side = {"source": "files", "table": "ledger", "primary_key": "id", "filters": scoped}
    rules = [{"name": "same", "conditions": [{"left": "REF", "op": "eq", "right": "REF"}]}]
    recipe = {"name": "twins", "sources": {"left": side, "right": side}, "rules": rules}
    query = {
        "source": "files",
        "query": "SELECT id, upper(REF) AS REF FROM ledger",
        "primary_key": "id",
    }
    async with deployment.working(queues=QUEUES):
        run = await over(me, await start(me, recipe=recipe))
        refused = await over(
            me, await start(me, recipe=recipe | {"sources": {"left": query, "right": side}})
        )
    assert run["status"] == "completed", run["error"]
    assert run["totals"]["left"] | {"amounts": 0} == run["totals"]["right"] | {"amounts": 0}
    assert (run["totals"]["left"]["rows"], run["totals"]["left"]["matched"]) == (1, 1)
    assert refused["error"]["code"] == "SOURCE_QUERY_ERROR"
    assert "ref and REF of ledger differ only in case" in refused["error"]["message"]


async def test_a_table_of_files_that_is_named_with_dots_is_not_there(tmp_path: Path) -> None:
    root = folder(tmp_path)
    async with open_source("files", {"url": f"file://{root}", "tables": TABLES}, {}) as source:
        for name in ("main.ledger", "a.b.ledger", "nothing.at all"):
            side = Side(source="files", table=name, primary_key=("id",))
            with pytest.raises(SourceQueryError, match=f"There is no table {name}") as caught:
                await native_files.take(source, side, tmp_path / "taken.parquet")
            assert "ledger" in (caught.value.hint or "")
