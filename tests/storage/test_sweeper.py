"""The sweeper takes what no manifest names, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from penstock.kit.errors import InvalidInput
from penstock.storage.errors import ObjectMissing
from penstock.storage.manifest import Entity, Manifest, read_manifest, write_manifest
from penstock.storage.object_store import StoreOptions, open_store
from penstock.storage.part import Part, attempt_of
from penstock.storage.sweeper import Sweeper, Swept, remove
from tests.storage.conftest import BUCKET
from tests.storage.gcs_server import PAGE, WRITER, GcsServer, Unfinished

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.storage.contract import Store
    from tests.storage.conftest import Place

NOW = timedelta(0)


async def put(store: Store, *keys: str) -> None:
    for key in keys:
        await store.create(key, b"12345")


async def commit(store: Store, prefix: str, *paths: str) -> None:
    parts = tuple(Part(path=path, size=5, rows=1) for path in paths)
    entities = {"n": Entity(columns=(), arrow_schema="", sql_sha256="", parts=parts)}
    await write_manifest(store, prefix, Manifest(created_at=datetime.now(UTC), entities=entities))


async def keys(store: Store) -> set[str]:
    return {info.key async for info in store.list("")}


async def test_only_what_no_manifest_names_goes(store: Store) -> None:
    await put(
        store,
        "s-1/n/part-00000-new.parquet",
        "s-1/n/part-00000-old.parquet",
        "s-1/n/part-00001-old.parquet",
    )
    await put(store, "s-1/n/part-00001-old.parquet.claim", "s-1/attempt-old/x/data_0.parquet")
    await commit(store, "s-1/", "s-1/n/part-00000-new.parquet")
    swept = await Sweeper(store, "s-1/", floor=NOW).run_once()
    assert swept == Swept(objects=4, bytes=20, uploads=0, unread=0)
    assert await keys(store) == {"s-1/n/part-00000-new.parquet", "s-1/manifest.json"}
    assert (await Sweeper(store, "s-1/", floor=NOW).run_once()).objects == 0


async def test_a_neighbour_whose_name_begins_alike_is_not_touched(store: Store) -> None:
    await put(store, "snapshot-1/part-00000-a.parquet", "snapshot-10/part-00000-a.parquet")
    await Sweeper(store, "snapshot-1/", floor=NOW).run_once()
    assert await keys(store) == {"snapshot-10/part-00000-a.parquet"}
    with pytest.raises(InvalidInput):
        Sweeper(store, "snapshot-1", floor=NOW)


async def test_what_is_younger_than_the_floor_stays(store: Store) -> None:
    await put(store, "s/part-00000-a.parquet")
    assert (await Sweeper(store, "s/", floor=timedelta(hours=1)).run_once()).objects == 0
    assert await keys(store) == {"s/part-00000-a.parquet"}


async def test_a_live_attempt_is_spared(folder: Place) -> None:
    async def live() -> Collection[str]:
        return {"busy"}

    store = folder.open()
    await put(store, "s/part-00000-busy.parquet", "s/part-00000-dead.parquet")
    await Sweeper(store, "s/", floor=NOW, live=live).run_once()
    assert await keys(store) == {"s/part-00000-busy.parquet"}


async def test_what_commits_while_the_sweep_looks_is_spared(folder: Place) -> None:
    store = folder.open()

    async def live() -> Collection[str]:
        await commit(store, "s/", "s/n/part-00000-late.parquet")
        return ()

    await put(store, "s/n/part-00000-late.parquet")
    await Sweeper(store, "s/", floor=NOW, live=live).run_once()
    assert "s/n/part-00000-late.parquet" in await keys(store)


async def test_a_manifest_above_the_swept_prefix_counts(folder: Place) -> None:
    store = folder.open()
    await put(store, "s/n/part-00000-a.parquet")
    await commit(store, "s/", "s/n/part-00000-a.parquet")
    assert (await Sweeper(store, "s/n/", floor=NOW).run_once()).objects == 0


async def test_under_a_manifest_that_cannot_be_read_nothing_goes(folder: Place) -> None:
    store = folder.open()
    await put(
        store, "bad/n/part-00000-a.parquet", "good/n/part-00000-a.parquet", "bad/manifest.json"
    )
    swept = await Sweeper(store, "", floor=NOW).run_once()
    assert (swept.objects, swept.unread) == (1, 1)
    assert await keys(store) == {"bad/n/part-00000-a.parquet", "bad/manifest.json"}


async def test_what_no_attempt_wrote_is_never_touched(folder: Place) -> None:
    store = folder.open()
    foreign = {
        "s/manifest.json2",
        "s/notes.txt",
        "s/part-0-a.parquet",
        "s/part-00000.parquet",
        "s/attempt-1",
    }
    await put(store, *foreign)
    assert (await Sweeper(store, "s/", floor=NOW).run_once()).objects == 0
    assert await keys(store) == foreign


async def test_unfinished_uploads_beyond_one_page_all_go(gcs: GcsServer) -> None:
    options = StoreOptions(endpoint=gcs.url, bearer_token=WRITER, allow_http=True)
    store = open_store(f"gs://{BUCKET}/pages", options=options)
    unfinished = gcs.buckets[BUCKET].uploads
    for number in range(2 * PAGE + 5):
        key = f"pages/s/part-{number:05d}-a.parquet"
        unfinished[f"id-{number}"] = Unfinished(key, datetime.now(UTC) - timedelta(hours=3))
    unfinished["young"] = Unfinished("pages/s/part-00000-b.parquet", datetime.now(UTC))
    swept = await Sweeper(store, "s/", floor=timedelta(hours=1)).run_once()
    assert swept.uploads == 2 * PAGE + 5
    assert [u.id for u in await store.uploads.under("") or ()] == ["young"]


async def test_a_result_is_removed_whole_and_its_neighbour_kept(store: Store) -> None:
    for prefix in ("snapshot-1/", "snapshot-10/"):
        await put(store, f"{prefix}n/part-00000-a.parquet")
        await commit(store, prefix, f"{prefix}n/part-00000-a.parquet")
    assert await remove(store, "snapshot-1/") == 5
    with pytest.raises(ObjectMissing):
        await read_manifest(store, "snapshot-1/")
    assert await keys(store) == {"snapshot-10/n/part-00000-a.parquet", "snapshot-10/manifest.json"}
    assert await remove(store, "snapshot-1/") == 0


async def test_the_whole_store_is_never_a_result(folder: Place) -> None:
    with pytest.raises(InvalidInput):
        await remove(folder.open(), "")


@pytest.mark.parametrize(
    ("key", "attempt"),
    [
        ("s/n/part-00000-0198c0de-aaaa.parquet", "0198c0de-aaaa"),
        ("part-123456-a_b.parquet.claim", "a_b"),
        ("s/attempt-7/any/file", "7"),
        ("s/manifest.json", None),
        ("s/part-00000-a.parquet.bak", None),
        ("s/my-attempt-7/file", None),
    ],
)
def test_an_attempt_is_known_by_its_names(key: str, attempt: str | None) -> None:
    assert attempt_of(key) == attempt
