"""A real Spark 3.5 with Iceberg, behind its Thrift server and Spark Connect, in one Java.

Spark comes from PyPI, once, into a cache outside the repository; Iceberg and Connect from Maven Central. Its catalog is
ours, by way of a door at which a test may hold a request.

python -m tests.servers.spark
"""

from __future__ import annotations

import asyncio
import fcntl
import re
import shutil
import subprocess
import sys
import time
import zlib
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from penstock.maintenance.remote import Failed, Running
from penstock.maintenance.spark.address import read_address
from penstock.maintenance.spark.hive import HiveEngine
from tests.servers import maven
from tests.servers.http import HttpServer, Request, Response, as_json
from tests.servers.process import free_ports, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

VERSION = "3.5.7"
ICEBERG = "1.10.2"
JAVA = (17, 23)
CATALOG = "kept"
FETCH_SECONDS = 240
READY_SECONDS = 120
_ARTIFACTS = (
    f"org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:{ICEBERG}",
    f"org.apache.spark:spark-connect_2.12:{VERSION}",
)
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action"),
    "sun.util.calendar",
)


def cache() -> Path:
    return maven.cache().parent / f"spark-{VERSION}-iceberg-{ICEBERG}"


def install(patience: float) -> Path:
    """The folder with all jars, fetched when it is not there yet."""
    home = cache() / "jars"
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            _fetch(home, time.monotonic() + patience)
    return home


def _fetch(home: Path, deadline: float) -> None:
    work = cache() / "fetching"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    _fetch_spark(work, deadline)
    jars = work / "pyspark" / "jars"
    for artifact in _ARTIFACTS:
        maven.copy(artifact, jars, deadline, what="Spark")
    jars.rename(home)
    shutil.rmtree(work)


def _fetch_spark(work: Path, deadline: float) -> None:
    bootstrapped = Path(__file__).parents[2] / ".cache" / "bootstrap" / "bin" / "uv"
    uv = str(bootstrapped) if bootstrapped.is_file() else shutil.which("uv")
    if uv is None:
        raise maven.Unobtainable("no real Spark: uv is not here to fetch it from PyPI")
    command = [uv, "pip", "install", "-q", "--python", sys.executable, "--no-deps", "--target", str(work)]
    try:
        left = max(1.0, deadline - time.monotonic())
        done = subprocess.run([*command, f"pyspark=={VERSION}"], capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        raise maven.Unobtainable(
            "no real Spark: fetching it takes long; run python -m tests.servers.spark once, and wait"
        ) from None
    if done.returncode != 0:
        raise maven.Unobtainable(f"no real Spark: PyPI does not give pyspark {VERSION}")


@dataclass(slots=True, kw_only=True)
class Gate:
    """Holds the requests whose method and path it fits, until it is opened; later ones too unless `once`."""

    method: str
    path: str
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    once: bool = True
    answer: Response | None = None
    _opened: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self) -> None:
        self._opened.set()

    def refuse(self, status: int = 400, kind: str = "BadRequestException") -> None:
        """What is held is never served, but answered with an error."""
        error = {"error": {"message": "The test does not want it.", "type": kind, "code": status}}
        self.answer = as_json(error, status)
        self.open()

    async def passing(self, request: Request) -> Response | None:
        """None lets it pass."""
        if request.method != self.method or not re.search(self.path, request.path):
            return None
        if self._opened.is_set() and self.once:
            return None
        self.reached.set()
        await self._opened.wait()
        return self.answer


class Door:
    """In front of whichever control plane a test has: passes requests on to `target`."""

    def __init__(self) -> None:
        self.target = ""
        self.gates: list[Gate] = []
        self.passed: list[str] = []
        self._http = HttpServer(self._serve)
        self._client = httpx2.AsyncClient(timeout=60)

    async def __aenter__(self) -> Door:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.__aexit__()
        await self._client.aclose()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.port}"

    def hold(self, method: str, path: str, *, once: bool = True) -> Gate:
        gate = Gate(method=method, path=path, once=once)
        self.gates.append(gate)
        return gate

    def reset(self, target: str = "") -> None:
        self.target = target
        for gate in self.gates:
            gate.open()
        self.gates, self.passed = [], []

    async def _serve(self, request: Request) -> Response:
        for gate in list(self.gates):
            if (answer := await gate.passing(request)) is not None:
                return answer
        self.passed.append(f"{request.method} {request.path}")
        kept = {name: value for name, value in request.headers.items() if name in ("authorization", "content-type")}
        try:
            answer = await self._client.request(
                request.method, f"{self.target}{request.path}?{request.query}", content=request.body, headers=kept
            )
        except (httpx2.TransportError, httpx2.UnsupportedProtocol):
            return Response(status=503)
        return Response(
            status=answer.status_code, body=answer.content, headers={"Content-Type": answer.headers["content-type"]}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    hive_port: int
    connect_port: int
    door: Door

    @property
    def engines(self) -> dict[str, dict[str, str]]:
        """As a deployment is told of them."""
        brisk = {"type": "spark", "catalog": CATALOG, "client_timeout": "1"}
        hive = brisk | {"url": f"hive2://127.0.0.1:{self.hive_port}"}
        return {"hive": hive, "connect": brisk | {"url": f"sc://127.0.0.1:{self.connect_port}"}}

    async def rows(self, sql: str) -> list[dict[str, Any]]:
        engine = HiveEngine(read_address(self.engines["hive"]))
        held = await engine.begin(sql)
        step = await engine.look(held, sql, again=False)
        while isinstance(step, Running):
            held = step.held
            step = await engine.look(held, sql, again=False)
        await engine.release(held)
        assert not isinstance(step, Failed), step.error
        return [dict(row) for row in step.rows]

    async def content(self, table: str) -> tuple[int, int]:
        """Count and checksum of a table of `tests.maintenance.tables`, as Java's Iceberg reads it."""
        line = "concat_ws('|', id, day, coalesce(note, '-'), unix_micros(at))"
        [found] = await self.rows(f"SELECT count(*) AS n, sum(crc32({line})) AS c FROM {CATALOG}.{table}")
        return int(found["n"]), int(found["c"] or 0)


def content(rows: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """The same of rows that were read in some other way."""
    lines = [
        f"{row['id']}|{row['day']}|{row['note'] or '-'}|{round(row['at'].timestamp() * 1_000_000)}" for row in rows
    ]
    return len(lines), sum(zlib.crc32(line.encode()) for line in lines)


@asynccontextmanager
async def spark(folder: Path) -> AsyncIterator[Spark]:
    """The server, ready for statements; `maven.Unobtainable` says why there is none."""
    java = maven.java_home(*JAVA, what="Spark") / "bin" / "java"
    jars = await asyncio.to_thread(install, FETCH_SECONDS)
    hive_port, connect_port = free_ports(2)
    async with Door() as door:
        it = Spark(hive_port=hive_port, connect_port=connect_port, door=door)
        command = _command(str(java), jars, folder, it)
        with running(command, log=folder / "spark.log", cwd=folder) as process:
            await _ready(it, process, folder)
            yield it


async def _ready(it: Spark, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    for port in (it.hive_port, it.connect_port):
        while not await _answers(port):
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError(f"Spark did not start:\n{(folder / 'spark.log').read_text()[-3000:]}")
            await asyncio.sleep(0.1)


async def _answers(port: int) -> bool:
    with suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return True
    return False


def _command(java: str, jars: Path, folder: Path, it: Spark) -> list[str]:
    catalog = f"spark.sql.catalog.{CATALOG}"
    settings = {
        "java.io.tmpdir": folder,
        "spark.app.name": "tests",
        "spark.connect.grpc.binding.port": it.connect_port,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.hadoop.hive.server2.long.polling.timeout": "30s",
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": it.hive_port,
        # A session that closes looks for Hive's own catalog, which is not there: once, and without waiting.
        "spark.hadoop.hive.metastore.client.connect.retry.delay": 0,
        "spark.hadoop.hive.metastore.connect.retries": 1,
        "spark.hadoop.hive.metastore.failure.retries": 0,
        "spark.hadoop.hive.metastore.uris": "thrift://127.0.0.1:1",
        "spark.default.parallelism": 1,
        "spark.log.level": "WARN",
        "spark.master": "local[2]",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        # Tiny tables: to compile a plan takes longer than to run it.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.shuffle.partitions": 1,
        "spark.ui.enabled": "false",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.cache-enabled": "false",
        f"{catalog}.token": "operator",
        f"{catalog}.type": "rest",
        f"{catalog}.uri": f"{it.door.url}/api/iceberg/lake",
    }
    return [
        *(java, "-Xmx1G", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djdk.reflect.useDirectMethodHandle=false"),
        *(f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in _OPENED),
        *(f"-D{name}={value}" for name, value in settings.items()),
        *("-cp", f"{jars}/*", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"),
    ]


if __name__ == "__main__":
    print(maven.java_home(*JAVA, what="Spark"), install(3600), file=sys.stderr)  # noqa: T201
