"""A real single-node Trino with its spool in S3: catalogs tpch, memory and lake (Iceberg)."""

from __future__ import annotations

import base64
import secrets
import tarfile
import time
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2

from tests.servers import java
from tests.servers.parts import SHARED, Part, alone, from_maven, new_folder
from tests.servers.process import free_ports, running
from tests.servers.weed import Weed, weed

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping
    from pathlib import Path

READY_SECONDS = 120
CLIENT_TIMEOUT = 10
BUCKET = "spool"
VERSION = "476"
VECTORS = "jdk.incubator.vector"
"""A module that Trino uses where Java has it."""

_SERVER = "0f388f9967c177ae70a47c099082fc95387f0c3cb96d8000d1d41fc3a5223158"
_CONNECTORS = {
    "iceberg": "99edba5b491ed94d599aeb61e0794272d3569d8b563f3bb8569e8a49daa87b6c",
    "memory": "bade81c52e2f7177a7b867aee1b10fae48fefda9c38f3ec6aeb006fdde5f0378",
    "tpch": "d83467efe864b1e77013208c293835e197bc3135318c2895521c1efbb7f232bd",
}
_PLUGINS = ("spooling-filesystem", *(f"trino-{name}-{VERSION}" for name in _CONNECTORS))


def cache() -> Path:
    return SHARED / f"trino-{VERSION}"


def _fetch() -> None:
    with alone(cache()), new_folder(cache() / "server") as work:
        packed = from_maven(f"io.trino:trino-server-core:{VERSION}:tar.gz", _SERVER, work)
        with tarfile.open(packed) as archive:
            archive.extractall(work, filter="data")
        packed.unlink()
        inner = work / f"trino-server-core-{VERSION}"
        for part in inner.iterdir():
            part.rename(work / part.name)
        inner.rmdir()
        for name, digest in _CONNECTORS.items():
            packed = from_maven(f"io.trino:trino-{name}:{VERSION}:zip", digest, work)
            with zipfile.ZipFile(packed) as archive:
                archive.extractall(work / "plugin")
            packed.unlink()


PART = Part(name=f"Trino {VERSION}", present=(cache() / "server").is_dir, fetch=_fetch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trino:
    url: str
    folder: Path
    spool: Weed


@contextmanager
def trino(folder: Path, catalogs: Mapping[str, dict[str, object]] | None = None) -> Iterator[Trino]:
    """The server, ready for queries, with more catalogs than its own."""
    PART.require()
    runtime, home = java.FOR_TRINO.home(), cache() / "server"
    [port] = free_ports(1)
    (folder / "weed").mkdir()
    with weed(folder / "weed", BUCKET) as (s3, weed_process):
        _configure(folder, home, port, s3)
        for name, properties in (catalogs or {}).items():
            _write(folder / f"etc/catalog/{name}.properties", properties)
        archive = cache() / "classes.jsa"
        with running(
            _command(runtime, folder, home, archive), log=folder / "server.log", cwd=folder
        ) as process:
            it = Trino(url=f"http://127.0.0.1:{port}", folder=folder, spool=s3)
            _await(it, (process, weed_process))
            yield it
            _end(process, archive)


def _command(runtime: Path, folder: Path, home: Path, archive: Path) -> list[str]:
    return [
        str(runtime / "bin" / "java"),
        "-Xmx1G",
        "-XX:+UseG1GC",
        # A short life: no time to win back what the better compiler costs. The archive saves a
        # third of the start.
        "-XX:TieredStopAtLevel=1",
        "-XX:+AutoCreateSharedArchive",
        f"-XX:SharedArchiveFile={archive}",
        "-Djdk.attach.allowAttachSelf=true",
        *([f"--add-modules={VECTORS}"] if java.has_module(runtime, VECTORS) else []),
        "-Dnode.environment=test",
        "-Dnode.id=test",
        f"-Dnode.data-dir={folder / 'data'}",
        "-Dconfig=etc/config.properties",
        "-cp",
        f"{home}/lib/*",
        "io.trino.server.TrinoServer",
    ]


def _configure(folder: Path, home: Path, port: int, s3: Weed) -> None:
    for name in ("data", "etc/catalog", "plugin", "secrets-plugin", "lake"):
        (folder / name).mkdir(parents=True)
    for name in _PLUGINS:
        (folder / "plugin" / name).symlink_to(home / "plugin" / name)
    _write(
        folder / "etc/config.properties",
        {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": port,
            "discovery.uri": f"http://127.0.0.1:{port}",
            "query.client.timeout": f"{CLIENT_TIMEOUT}s",
            "query.max-length": 50_000_000,
            "query.max-memory": "600MB",
            "query.max-memory-per-node": "600MB",
            "memory.heap-headroom-per-node": "200MB",
            "protocol.spooling.enabled": "true",
            "protocol.spooling.shared-secret-key": base64.b64encode(
                secrets.token_bytes(32)
            ).decode(),
            "protocol.spooling.retrieval-mode": "COORDINATOR_PROXY",
        },
    )
    _write(
        folder / "etc/spooling-manager.properties",
        {
            "spooling-manager.name": "filesystem",
            "fs.s3.enabled": "true",
            "fs.location": f"s3://{s3.bucket}/",
            "fs.segment.encryption": "false",
            "s3.endpoint": s3.endpoint,
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
            "s3.aws-access-key": s3.access_key,
            "s3.aws-secret-key": s3.secret_key,
        },
    )
    _write(folder / "etc/catalog/tpch.properties", {"connector.name": "tpch"})
    _write(folder / "etc/catalog/memory.properties", {"connector.name": "memory"})
    _write(
        folder / "etc/catalog/lake.properties",
        {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "TESTING_FILE_METASTORE",
            "hive.metastore.catalog.dir": "local:///lake",
            "fs.native-local.enabled": "true",
            "local.location": folder,
        },
    )


def _write(path: Path, properties: dict[str, object]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def _await(it: Trino, processes: tuple[subprocess.Popen[bytes], ...]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not (it.spool.ready() and _started(it)):
        if time.monotonic() > deadline or any(process.poll() is not None for process in processes):
            raise RuntimeError(
                f"Trino did not start:\n{(it.folder / 'server.log').read_text()[-3000:]}"
            )
        time.sleep(0.1)


def _started(it: Trino) -> bool:
    """Whether it answers a query; it says that it has started before it has found its one node."""
    try:
        info = httpx2.get(f"{it.url}/v1/info", timeout=2)
        return info.is_success and info.json()["starting"] is False and _answers(it)
    except httpx2.TransportError:
        return False


def _answers(it: Trino) -> bool:
    sql = "SELECT count(*) FROM tpch.tiny.region"
    reply = httpx2.post(
        f"{it.url}/v1/statement", content=sql, headers={"X-Trino-User": "tester"}, timeout=10
    ).json()
    while "nextUri" in reply:
        reply = httpx2.get(reply["nextUri"], timeout=10).json()
    return "error" not in reply


def _end(process: subprocess.Popen[bytes], archive: Path) -> None:
    """Java writes its archive of classes when it ends in peace; only the first time is worth the
    wait."""
    if not archive.is_file():
        process.terminate()
        process.wait(60)
