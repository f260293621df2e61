"""Three places that the same promises are held against: a folder, a real SeaweedFS, and a server of
GCS's XML API."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx2
import pytest

from penstock.storage import unfinished_writes
from penstock.storage.object_store import StoreOptions, open_store
from tests.storage.gcs_server import READER, WRITER, GcsServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.storage.contract import Store

BUCKET = "penstock"
PART = 5 * 1024 * 1024
READY_SECONDS = 60
_KEYS = {"admin": ("adminkey", "adminsecret"), "reader": ("readerkey", "readersecret")}
_IDENTITIES = [
    {"name": name, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}
    for (name, (key, secret)), actions in zip(
        _KEYS.items(), (["Admin", "Read", "Write", "List"], ["Read", "List"]), strict=True
    )
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A test store, and its variants with the wrong bucket, the wrong key or no server."""

    kind: str
    url: str
    options: StoreOptions
    reader: StoreOptions | None = None
    stranger: StoreOptions | None = None

    def open(self) -> Store:
        return open_store(self.url, options=self.options)


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreOptions]:
    """A SeaweedFS of this test process; every bucket but ours is missing."""
    folder = tmp_path_factory.mktemp("weed")
    (folder / "s3.json").write_text(json.dumps({"identities": _IDENTITIES}))
    master, volume, filer, port, *grpc = _free_ports(8)
    ports = zip(
        ("master", "volume", "filer", "s3"), (master, volume, filer, port), grpc, strict=True
    )
    command = [
        str(Path(sys.executable).with_name("weed")),
        "server",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-volume.max=20",
        "-master.volumeSizeLimitMB=256",
        "-s3",
        f"-s3.config={folder / 's3.json'}",
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.localSocket={folder / 's3.sock'}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        *(
            flag
            for name, http, rpc in ports
            for flag in (f"-{name}.port={http}", f"-{name}.port.grpc={rpc}")
        ),
    ]
    with (
        (folder / "weed.log").open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=out) as weed,
    ):
        try:
            endpoint = f"http://127.0.0.1:{port}"
            _await_bucket(endpoint, weed, folder / "weed.log")
            key, secret = _KEYS["admin"]
            yield _quick(
                StoreOptions(endpoint=endpoint, access_key_id=key, secret_access_key=secret)
            )
        finally:
            weed.kill()


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsServer]:
    with GcsServer(BUCKET) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    root = tmp_path / "storage"
    root.mkdir()
    return Place(kind="folder", url=f"file://{root}", options=_quick(StoreOptions()))


@pytest.fixture(params=["s3", "gcs"])
def remote(request: pytest.FixtureRequest) -> Place:
    """Each kind of server, below a root that no other test has."""
    return _remote(request.param, request)


@pytest.fixture(params=["folder", "s3", "gcs"])
def place(request: pytest.FixtureRequest) -> Place:
    """Each kind of store, below a root that no other test has."""
    if request.param == "folder":
        place: Place = request.getfixturevalue("folder")
        return place
    return _remote(request.param, request)


def _remote(kind: str, request: pytest.FixtureRequest) -> Place:
    root = f"root-{uuid4().hex[:12]}"
    if kind == "s3":
        options: StoreOptions = request.getfixturevalue("s3")
        key, secret = _KEYS["reader"]
        return Place(
            kind="s3",
            url=f"s3://{BUCKET}/{root}",
            options=options,
            reader=replace(options, access_key_id=key, secret_access_key=secret),
            stranger=replace(options, access_key_id="hunter1", secret_access_key="hunter2"),
        )
    server: GcsServer = request.getfixturevalue("gcs")
    options = _quick(StoreOptions(endpoint=server.url, bearer_token=WRITER))
    return Place(
        kind="gcs",
        url=f"gs://{BUCKET}/{root}",
        options=options,
        reader=replace(options, bearer_token=READER),
        stranger=replace(options, bearer_token="hunter2"),
    )


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()


def _quick(options: StoreOptions) -> StoreOptions:
    return replace(options, allow_http=True, part_bytes=PART, timeout_seconds=20, retry_seconds=0.2)


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]


def _await_bucket(endpoint: str, weed: subprocess.Popen[bytes], log: Path) -> None:
    """The server is ready when it takes a bucket and an object."""
    sign = unfinished_writes.aws(*_KEYS["admin"], region="us-east-1")
    deadline = time.monotonic() + READY_SECONDS
    waiting = [f"/{BUCKET}", f"/{BUCKET}/ready"]
    while waiting:
        if weed.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"weed did not start:\n{log.read_text()[-2000:]}")
        headers = sign("PUT", endpoint.removeprefix("http://"), waiting[0], "")
        try:
            if httpx2.put(endpoint + waiting[0], headers=dict(headers)).is_success:
                waiting.pop(0)
                continue
        except httpx2.TransportError:
            pass
        time.sleep(0.05)
