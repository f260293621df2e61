"""What every store promises, held against each kind of store there is."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from penstock.kit.errors import InvalidInput, PenstockError
from penstock.storage.errors import (
    BucketMissing,
    ObjectExists,
    ObjectMissing,
    StorageRefused,
    StorageUnavailable,
)
from penstock.storage.object_store import StoreOptions, open_store

if TYPE_CHECKING:
    from penstock.storage.contract import Store
    from tests.storage.conftest import Place

BIG = os.urandom(12 * 1024 * 1024)


async def stream(store: Store, key: str, data: bytes) -> object:
    def write() -> object:
        writer = store.writer(key)
        with writer:
            for start in range(0, len(data), 1024 * 1024):
                writer.write(data[start : start + 1024 * 1024])
            return writer.close()

    return await asyncio.to_thread(write)


async def keys(store: Store, prefix: str = "") -> list[str]:
    return sorted([info.key async for info in store.list(prefix)])


async def test_what_is_created_can_be_read_whole_and_in_ranges(store: Store) -> None:
    stored = await store.create("a/b.txt", b"0123456789")
    assert stored.size == 10
    assert stored.sha256 == hashlib.sha256(b"0123456789").hexdigest()
    assert await store.get("a/b.txt") == b"0123456789"
    assert await store.get_range("a/b.txt", 3, 4) == b"3456"
    assert b"".join([chunk async for chunk in store.stream("a/b.txt")]) == b"0123456789"
    head = await store.head("a/b.txt")
    assert (head.key, head.size, head.etag) == ("a/b.txt", 10, stored.etag)


async def test_a_name_that_is_taken_is_refused_and_kept(store: Store) -> None:
    await store.create("a", b"first")
    with pytest.raises(ObjectExists):
        await store.create("a", b"second")
    for size in (10, len(BIG)):
        with pytest.raises(ObjectExists):
            await stream(store, "a", BIG[:size])
    assert await store.get("a") == b"first"
    assert await keys(store) == ["a"]


async def test_of_many_creators_at_once_one_wins(store: Store) -> None:
    data = [b"%d" % i for i in range(4)]
    results = await asyncio.gather(*(store.create("one", d) for d in data), return_exceptions=True)
    winners = [d for d, r in zip(data, results, strict=True) if not isinstance(r, BaseException)]
    assert [type(r) for r in results if isinstance(r, BaseException)] == [ObjectExists] * 3
    assert [await store.get("one")] == winners


async def test_of_many_streams_at_once_one_wins(store: Store) -> None:
    data = [bytes([i]) + BIG for i in range(3)]
    results = await asyncio.gather(*(stream(store, "one", d) for d in data), return_exceptions=True)
    winners = [d[0] for d, r in zip(data, results, strict=True) if not isinstance(r, BaseException)]
    assert [type(r) for r in results if isinstance(r, BaseException)] == [ObjectExists] * 2
    assert [(await store.get_range("one", 0, 1))[0]] == winners
    assert await keys(store) == ["one"]


@pytest.mark.parametrize("size", [0, 1, 5 * 1024 * 1024, 5 * 1024 * 1024 + 1, len(BIG)])
async def test_a_stream_of_any_size_arrives_whole(store: Store, size: int) -> None:
    stored = await stream(store, "s/big", BIG[:size])
    head = await store.head("s/big")
    assert (head.size, head.etag) == (size, getattr(stored, "etag", None))
    assert await store.get("s/big") == BIG[:size]
    assert await keys(store) == ["s/big"]


@pytest.mark.parametrize("size", [100, len(BIG)])
async def test_a_stream_that_fails_leaves_nothing(store: Store, size: int) -> None:
    def fail() -> None:
        with store.writer("gone") as writer:
            writer.write(BIG[:size])
            raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        await asyncio.to_thread(fail)
    assert not await store.exists("gone")
    assert await keys(store) == []
    assert not await store.uploads.under("")


async def test_nothing_is_visible_before_a_stream_is_closed(store: Store) -> None:
    writer = store.writer("later")
    await asyncio.to_thread(writer.write, BIG)
    assert not await store.exists("later")
    with pytest.raises(ObjectMissing):
        await store.get("later")
    await asyncio.to_thread(writer.close)
    assert await store.exists("later")


async def test_a_stream_that_never_ends_can_be_found_and_aborted_by_others(store: Store) -> None:
    key = "jo@example.org/v=1+2/part-00000-a.parquet"
    writer = store.writer(key)
    await asyncio.to_thread(writer.write, BIG)
    unfinished = await store.uploads.under("jo@example.org/") or []
    assert [upload.key for upload in unfinished] == [key]
    assert await store.uploads.under("jo@example.or/") == []
    await store.uploads.abort(unfinished)
    await store.uploads.abort(unfinished)
    assert await store.uploads.under("") == []
    await asyncio.to_thread(writer.abort)
    assert await keys(store) == []


async def test_an_ended_stream_takes_nothing_more(store: Store) -> None:
    writer = store.writer("ended")
    await asyncio.to_thread(writer.close)
    with pytest.raises(ValueError, match="write to closed"):
        writer.write(b"more")


async def test_listing_is_by_whole_segments_and_complete(store: Store) -> None:
    expected = [f"snapshot-1/part-{i:03d}" for i in range(100)]
    await asyncio.gather(
        *(store.create(key, b"x") for key in [*expected, "snapshot-10/part-000", "other"])
    )
    assert await keys(store, "snapshot-1/") == expected
    assert await keys(store, "nothing/") == []
    with pytest.raises(InvalidInput):
        await keys(store, "snapshot-1")


async def test_deleting_is_idempotent(store: Store) -> None:
    for key in ("a/1", "a/2", "a/3"):
        await store.create(key, b"x")
    await store.delete(["a/1", "a/none", "a/3"])
    assert await keys(store) == ["a/2"]
    await store.delete(["a/1", "a/2", "a/3"])
    await store.delete([])
    assert await keys(store) == []


async def test_a_missing_object_is_said_to_be_missing(store: Store) -> None:
    assert not await store.exists("none")
    for ask in (store.get("none"), store.get_range("none", 0, 1), store.head("none")):
        with pytest.raises(ObjectMissing, match="none does not exist"):
            await ask


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a b", "a#1", "ä", "a\\b", "-a"]
)
async def test_a_key_that_is_not_made_of_ids_is_refused(folder: Place, key: str) -> None:
    with pytest.raises(InvalidInput):
        await folder.open().create(key, b"x")


async def test_a_missing_bucket_is_named(place: Place) -> None:
    url = place.url.replace("/storage", "/nowhere").replace("/penstock/", "/nowhere/")
    for size in (10, len(BIG)):
        with pytest.raises(BucketMissing):
            await stream(open_store(url, options=place.options), "a", BIG[:size])
    with pytest.raises(BucketMissing):
        await open_store(url, options=place.options).check()
    await place.open().check()


async def test_a_refusal_is_told_without_the_secret(remote: Place) -> None:
    for options in (remote.reader, remote.stranger):
        store = open_store(remote.url, options=options)
        for write in (store.create("a", b"x"), stream(store, "a", BIG), store.delete(["a"])):
            with pytest.raises(StorageRefused) as refused:
                await write
            assert_no_secret(refused.value, options)


async def test_a_server_that_is_away_is_told_without_the_secret(remote: Place) -> None:
    options = replace(remote.options, endpoint="http://127.0.0.1:1")
    with pytest.raises(StorageUnavailable) as away:
        await open_store(remote.url, options=options).get("a")
    assert away.value.retryable
    assert_no_secret(away.value, options)


def assert_no_secret(error: PenstockError, options: StoreOptions | None) -> None:
    assert options is not None
    secrets = [
        s for s in (options.access_key_id, options.secret_access_key, options.bearer_token) if s
    ]
    shown = f"{error} {error.hint} {error.details} {options!r}"
    assert not [secret for secret in secrets if secret in shown]
    assert error.__cause__ is None
    assert error.__suppress_context__


async def test_a_url_with_credentials_is_refused_without_repeating_them() -> None:
    with pytest.raises(InvalidInput) as refused:
        open_store("s3://key:hunter2@bucket/prefix")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["ftp://host/folder", "s3://", "gs:///prefix", "s3://bucket/a/../b"]
)
async def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        open_store(url)


async def test_unfinished_writes_are_shown_only_to_who_may_see_them(remote: Place) -> None:
    assert await remote.open().uploads.under("") == []
    assert remote.stranger is not None
    assert await open_store(remote.url, options=remote.stranger).uploads.under("") is None


async def test_a_plain_path_is_a_folder_and_may_be_made(tmp_path: object) -> None:
    with pytest.raises(BucketMissing):
        open_store(f"{tmp_path}/new")
    store = open_store(f"{tmp_path}/new", options=StoreOptions(create_root=True))
    await store.create("a", b"x")
    assert store.url == f"file://{tmp_path}/new"
