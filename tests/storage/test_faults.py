"""Disks that are full or closed, and the translation of what obstore says."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError

from penstock.storage.errors import (
    BucketMissing,
    ObjectExists,
    ObjectMissing,
    StorageError,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
)
from penstock.storage.object_store import StoreOptions, open_store
from penstock.storage.obstore_errors import to_storage_error
from penstock.storage.parquet_sink import write_parquet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from penstock.kit.errors import PenstockError

MIB = 1024 * 1024


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a small filesystem of its own with the given options."""
    root = tmp_path / "disk"
    root.mkdir()
    mounted = False

    def do(options: str) -> Path:
        nonlocal mounted
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", root], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("a small filesystem can only be mounted by root")
        mounted = True
        return root

    yield do
    if mounted:
        subprocess.run(["umount", root], check=True)


def options() -> StoreOptions:
    return StoreOptions(part_bytes=5 * MIB)


async def noise(megabytes: int) -> AsyncIterator[pa.RecordBatch]:
    for _ in range(megabytes):
        yield pa.RecordBatch.from_arrays([[os.urandom(MIB)]], names=["blob"])


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


async def until_empty(root: Path) -> None:
    """The staging file goes in a thread of obstore's, a moment after the error."""
    async with asyncio.timeout(10):
        while files(root):  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.01)


async def test_a_disk_that_fills_half_way_is_named_and_keeps_no_half(
    mount: Callable[[str], Path],
) -> None:
    root = mount("size=16m")
    store = open_store(str(root), options=options())
    with pytest.raises(StorageFull, match="no space left") as full:
        await write_parquet(store, "t/", pa.schema([("blob", pa.binary())]), noise(40), attempt="a")
    assert not full.value.retryable
    assert [info async for info in store.list("")] == []
    await until_empty(root)


async def test_a_small_object_on_a_full_disk_is_refused_whole(mount: Callable[[str], Path]) -> None:
    root = mount("size=1m")
    store = open_store(str(root), options=options())
    with pytest.raises(StorageFull):
        await store.create("a", os.urandom(2 * MIB))
    await until_empty(root)


async def test_a_disk_that_is_read_only_refuses(mount: Callable[[str], Path]) -> None:
    store = open_store(str(mount("size=1m,ro")), options=options())
    with pytest.raises(StorageRefused):
        await store.create("a", b"x")


HEAD = (
    "Error performing PUT http://host/bucket/key?uploadId=SECRET in 1ms"
    " - Server returned non-2xx status code: "
)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AlreadyExistsError(HEAD + "412 Precondition Failed"), ObjectExists),
        (FileNotFoundError(HEAD + "404 Not Found: <Code>NoSuchKey</Code>"), ObjectMissing),
        (FileNotFoundError(HEAD + "404 Not Found: <Code>NoSuchBucket</Code>"), BucketMissing),
        (GenericError(HEAD + "404 Not Found: <Code>NoSuchBucket</Code>"), BucketMissing),
        (
            PermissionDeniedError(HEAD + "403 Forbidden: <AWSAccessKeyId>SECRET</AWSAccessKeyId>"),
            StorageRefused,
        ),
        (OSError(HEAD + "403 Forbidden"), StorageRefused),
        (
            GenericError("DeleteObjects request failed for key SECRET: (code: AccessDenied)"),
            StorageRefused,
        ),
        (GenericError("Error performing token request: SECRET"), StorageRefused),
        (
            GenericError("Error performing PUT http://169.254.169.254/latest SECRET - HTTP error"),
            StorageRefused,
        ),
        (OSError("Unable to open file SECRET: Permission denied (os error 13)"), StorageRefused),
        (
            OSError("Unable to copy data to file: No space left on device (os error 28)"),
            StorageFull,
        ),
        (OSError("Disk quota exceeded (os error 122)"), StorageFull),
        (GenericError(HEAD + "507 Insufficient Storage"), StorageFull),
        (GenericError(HEAD + "503 Service Unavailable: <Code>SlowDown</Code>"), StorageUnavailable),
        (GenericError(HEAD + "429 Too Many Requests"), StorageUnavailable),
        (
            GenericError("Error performing GET SECRET - HTTP error: error sending request"),
            StorageUnavailable,
        ),
        (GenericError(HEAD + "400 Bad Request: <Code>InvalidArgument</Code>"), StorageError),
    ],
)
def test_an_error_of_obstore_becomes_ours_and_loses_its_text(
    error: Exception, kind: type[PenstockError]
) -> None:
    ours = to_storage_error(error, "s3://bucket/key")
    assert type(ours) is kind
    assert "s3://bucket/key" in str(ours)
    assert "SECRET" not in f"{ours} {ours.hint} {ours.details}"
