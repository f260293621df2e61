"""A real Spark 3.5 with Iceberg, behind its Thrift server and Spark Connect, in one Java.

Spark comes from PyPI, Iceberg and Connect from Maven Central. Its catalog is ours, by way of a door
at which a test may hold a request.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
import zlib
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from penstock.maintenance.engines.contract import Failed, Running
from penstock.maintenance.engines.spark.address import read_address
from penstock.maintenance.engines.spark.hive import HiveEngine
from tests.servers import java
from tests.servers.http import HttpServer, Request, Response, as_json
from tests.servers.parts import SHARED, Part, alone, from_maven, from_pypi, new_folder
from tests.servers.process import free_ports, running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

VERSION = "3.5.7"
PY4J = "0.10.9.7"
"""Which this Spark asks for."""
ICEBERG = "1.10.2"
CATALOG = "kept"
READY_SECONDS = 120
_ARTIFACTS = {
    f"org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:{ICEBERG}:jar": (
        "c562d482dcd16b666e808b755469fbc4b2604284b41622c9d87e2c02b7cc6c5f"
    ),
    f"org.apache.spark:spark-connect_2.12:{VERSION}:jar": (
        "15366e21273a874c760b51fa00743a2acb8fa78642cc35d7a076a3ade0c5eef6"
    ),
}
_OPENED = (
    *(
        "java.lang",
        "java.lang.invoke",
        "java.lang.reflect",
        "java.io",
        "java.net",
        "java.nio",
        "java.util",
    ),
    *(
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "sun.nio.ch",
        "sun.nio.cs",
        "sun.security.action",
    ),
    "sun.util.calendar",
)


def folder() -> Path:
    return SHARED / f"spark-{VERSION}-iceberg-{ICEBERG}"


def jars() -> Path:
    """The folder with all jars."""
    PART.require()
    return folder() / "jars"


def client() -> Path:
    """The folder with the packages `pyspark` (without its jars, which it links to) and `py4j`."""
    PART.require()
    return folder() / "python"


def _present() -> bool:
    return (folder() / "jars").is_dir() and (folder() / "python").is_dir()


def _fetch() -> None:
    with alone(folder()):
        if not (folder() / "python").is_dir() or not (folder() / "jars").is_dir():
            _fetch_both()


def _fetch_both() -> None:
    with new_folder(folder() / "python") as work:
        from_pypi(work, f"pyspark=={VERSION}", f"py4j=={PY4J}")
        with new_folder(folder() / "jars") as fetched:
            shutil.copytree(work / "pyspark" / "jars", fetched, dirs_exist_ok=True)
            for artifact, digest in _ARTIFACTS.items():
                from_maven(artifact, digest, fetched)
        shutil.rmtree(work / "pyspark" / "jars")
        (work / "pyspark" / "jars").symlink_to(folder() / "jars")


PART = Part(name=f"Spark {VERSION} with Iceberg {ICEBERG}", present=_present, fetch=_fetch)


@dataclass(slots=True, kw_only=True)
class Gate:
    """Holds the requests whose method and path it fits, until it is opened; later ones too unless
    `once`."""

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
        headers = {
            name: value
            for name, value in request.headers.items()
            if name in ("authorization", "content-type")
        }
        try:
            answer = await self._client.request(
                request.method,
                f"{self.target}{request.path}?{request.query}",
                content=request.body,
                headers=headers,
            )
        except (httpx2.TransportError, httpx2.UnsupportedProtocol):
            return Response(status=503)
        return Response(
            status=answer.status_code,
            body=answer.content,
            headers={"Content-Type": answer.headers["content-type"]},
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
        handle = await engine.begin(sql)
        step = await engine.look(handle, sql, again=False)
        while isinstance(step, Running):
            handle = step.held
            step = await engine.look(handle, sql, again=False)
        await engine.release(handle)
        assert not isinstance(step, Failed), step.error
        return [dict(row) for row in step.rows]

    async def content(self, table: str) -> tuple[int, int]:
        """Count and checksum of a `tests.maintenance.tables` table, as Java's Iceberg reads it."""
        line = "concat_ws('|', id, day, coalesce(note, '-'), unix_micros(at))"
        [row] = await self.rows(
            f"SELECT count(*) AS n, sum(crc32({line})) AS c FROM {CATALOG}.{table}"
        )
        return int(row["n"]), int(row["c"] or 0)


def content(rows: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """The same of rows that were read in some other way."""
    lines = [
        f"{row['id']}|{row['day']}|{row['note'] or '-'}|{round(row['at'].timestamp() * 1_000_000)}"
        for row in rows
    ]
    return len(lines), sum(zlib.crc32(line.encode()) for line in lines)


@asynccontextmanager
async def spark(scratch: Path) -> AsyncIterator[Spark]:
    """The server, ready for statements."""
    program = java.FOR_SPARK.home() / "bin" / "java"
    hive_port, connect_port = free_ports(2)
    async with Door() as door:
        it = Spark(hive_port=hive_port, connect_port=connect_port, door=door)
        command = _command(str(program), jars(), scratch, it)
        with running(command, log=scratch / "spark.log", cwd=scratch) as process:
            await _ready(it, process, scratch)
            yield it


async def _ready(it: Spark, process: subprocess.Popen[bytes], scratch: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    for port in (it.hive_port, it.connect_port):
        while not await _answers(port):
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError(
                    f"Spark did not start:\n{(scratch / 'spark.log').read_text()[-3000:]}"
                )
            await asyncio.sleep(0.1)


async def _answers(port: int) -> bool:
    with suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return True
    return False


def _command(program: str, classes: Path, scratch: Path, it: Spark) -> list[str]:
    catalog = f"spark.sql.catalog.{CATALOG}"
    settings = {
        "java.io.tmpdir": scratch,
        "spark.app.name": "tests",
        "spark.connect.grpc.binding.port": it.connect_port,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.hadoop.hive.server2.long.polling.timeout": "30s",
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": it.hive_port,
        # A session that closes looks for Hive's own catalog, which is not there: once, and without
        # waiting.
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
        *(
            program,
            "-Xmx1G",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Djdk.reflect.useDirectMethodHandle=false",
        ),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        *(f"-D{name}={value}" for name, value in settings.items()),
        *("-cp", f"{classes}/*", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"),
    ]
