"""A real Trino of one node, with its spool in a real S3: catalogs tpch, memory and lake (Iceberg)."""

from __future__ import annotations

import base64
import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2

from tests.servers import maven
from tests.servers.process import free_ports, running
from tests.servers.weed import Weed, weed

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping
    from pathlib import Path

READY_SECONDS = 120
CLIENT_TIMEOUT = 10
FETCH_SECONDS = 240
BUCKET = "spool"

_PLUGINS = ("spooling-filesystem", *(f"trino-{name}-{maven.VERSION}" for name in maven.CONNECTORS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trino:
    url: str
    folder: Path
    spool: Weed


@contextmanager
def trino(folder: Path, catalogs: Mapping[str, dict[str, object]] | None = None) -> Iterator[Trino]:
    """The server, ready for queries, with more catalogs than its own; `maven.Unobtainable` says why there is none."""
    java, home = maven.java_home() / "bin" / "java", maven.install(FETCH_SECONDS)
    [port] = free_ports(1)
    (folder / "weed").mkdir()
    with weed(folder / "weed", BUCKET) as (s3, weed_process):
        _configure(folder, home, port, s3)
        for name, properties in (catalogs or {}).items():
            _write(folder / f"etc/catalog/{name}.properties", properties)
        archive = maven.cache() / "classes.jsa"
        with running(_command(str(java), folder, home, archive), log=folder / "server.log", cwd=folder) as process:
            it = Trino(url=f"http://127.0.0.1:{port}", folder=folder, spool=s3)
            _await(it, (process, weed_process))
            yield it
            _end(process, archive)


def _command(java: str, folder: Path, home: Path, archive: Path) -> list[str]:
    return [
        java,
        "-Xmx1G",
        "-XX:+UseG1GC",
        # A short life: no time to win back what the better compiler costs. The archive saves a third of the start.
        "-XX:TieredStopAtLevel=1",
        "-XX:+AutoCreateSharedArchive",
        f"-XX:SharedArchiveFile={archive}",
        "-Djdk.attach.allowAttachSelf=true",
        "--add-modules=jdk.incubator.vector",
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
            "protocol.spooling.shared-secret-key": base64.b64encode(secrets.token_bytes(32)).decode(),
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
            raise RuntimeError(f"Trino did not start:\n{(it.folder / 'server.log').read_text()[-3000:]}")
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
    reply = httpx2.post(f"{it.url}/v1/statement", content=sql, headers={"X-Trino-User": "tester"}, timeout=10).json()
    while "nextUri" in reply:
        reply = httpx2.get(reply["nextUri"], timeout=10).json()
    return "error" not in reply


def _end(process: subprocess.Popen[bytes], archive: Path) -> None:
    """Java writes its archive of classes when it ends in peace; only the first time is worth the wait."""
    if not archive.is_file():
        process.terminate()
        process.wait(60)
