"""The three readers: PyIceberg in this process, DuckDB and Spark in processes that live on.

A request is a metadata file and snapshots of it; `start` sends it and returns at once, so that
the readers work side by side.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pyiceberg.table import StaticTable

from tests.maintenance.differential.worker_loop import Metadata, answer_of, error_text
from tests.maintenance.readers import DUCKDB
from tests.servers import java
from tests.servers import spark as spark_server
from tests.servers.parts import REPOSITORY
from tests.servers.process import die_with_parent

if TYPE_CHECKING:
    from pathlib import Path

    from tests.maintenance.differential.worker_loop import Read


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    types: tuple[str, ...]
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    reason: str


Answer: TypeAlias = Rows | Unreadable
Pending: TypeAlias = Callable[[], list[Answer]]


class Reader(Protocol):
    name: str
    reads_refs: bool
    """Whether it knows branches and tags by name."""

    def start(self, metadata: str, reads: Sequence[Read]) -> Pending:
        """Begin to read; the result waits for the end."""
        ...


def _answer(fields: Mapping[str, object]) -> Answer:
    if "error" in fields:
        return Unreadable(reason=str(fields["error"]))
    return Rows(types=tuple(fields["types"]), rows=tuple(fields["rows"]))


class PyIcebergReader:
    name = "pyiceberg"
    reads_refs = True

    def start(self, metadata: str, reads: Sequence[Read]) -> Pending:
        def read() -> list[Answer]:
            table, facts = StaticTable.from_metadata(metadata), Metadata(metadata)
            return [_answer(self._read(table, read, facts.schema(read))) for read in reads]

        return read

    def _read(
        self, table: StaticTable, read: Read, schema: Mapping[str, object] | None
    ) -> Mapping[str, object]:
        try:
            named = isinstance(read, str)
            scan = table.scan().use_ref(read) if named else table.scan(snapshot_id=read)
            return answer_of(scan.to_arrow(), schema)
        except Exception as e:
            return {"error": error_text(e)}


class Worker:
    """A process that answers JSON lines, in the order in which they were sent. One that died is
    started anew by the next request."""

    def __init__(self, start: Callable[[], subprocess.Popen[str]], log: Path) -> None:
        self._start = start
        self._log = log
        self._life: _Life | None = None

    def __enter__(self) -> Worker:
        self._life = _Life(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        if self._life is not None:
            self._life.end()

    def wait_until_ready(self) -> None:
        if self._life.line() != "ready\n":
            raise RuntimeError(f"the worker did not start:\n{self._log.read_text()[-3000:]}")

    def send(self, **request: object) -> Callable[[], object]:
        if self._life.dead:
            self.restart()
        return self._life.send(request)

    def restart(self) -> None:
        self._life.end()
        self._life = _Life(self._start())
        self.wait_until_ready()


class _Life:
    """Of one process, from its start to its death, with what it was asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._answers: dict[int, Mapping[str, object]] = {}
        self._sent = self._received = 0
        self._code: int | None = None

    @property
    def dead(self) -> bool:
        return self._code is not None or self._process.poll() is not None

    def send(self, request: Mapping[str, object]) -> Callable[[], object]:
        number = self._sent
        self._sent += 1
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._code = self._process.wait(30)
        return lambda: self._result(number)

    def line(self) -> str:
        line = self._process.stdout.readline()
        if not line:
            self._code = self._process.wait(30)
            raise WorkerDied(f"its process died with {self._code}")
        return line

    def end(self) -> None:
        with suppress(BrokenPipeError):  # What a dead process did not take is lost.
            self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _result(self, number: int) -> object:
        while number not in self._answers:
            self._answers[self._received] = json.loads(self.line())
            self._received += 1
        answer = self._answers.pop(number)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["answer"]


class WorkerError(Exception):
    """What the engine reported."""


class WorkerDied(Exception):
    """The engine crashed."""


@dataclass(frozen=True, slots=True)
class WorkerReader:
    name: str
    worker: Worker
    reads_refs: bool

    def start(self, metadata: str, reads: Sequence[Read]) -> Pending:
        result = self._send(metadata, reads)

        def finish() -> list[Answer]:
            try:
                return [_answer(fields) for fields in result()]
            except WorkerDied:
                return [self._read_alone(metadata, read) for read in reads]

        return finish

    def _read_alone(self, metadata: str, read: Read) -> Answer:
        """In a new process, so that only this read can be what kills it."""
        self.worker.restart()
        try:
            [fields] = self._send(metadata, [read])()
        except WorkerDied as e:
            return Unreadable(reason=str(e))
        return _answer(fields)

    def _send(self, metadata: str, reads: Sequence[Read]) -> Callable[[], object]:
        file = metadata.removeprefix("file://")
        return self.worker.send(do="read", metadata=file, reads=list(reads))


@dataclass(frozen=True, slots=True)
class Spark:
    """The Spark that also writes."""

    worker: Worker
    warehouse: Path

    def run(self, *statements: str) -> list[list[object]]:
        return self.worker.send(do="run", statements=list(statements))()

    def delete_equal(self, table: str, field: int, value: int) -> None:
        self.worker.send(do="delete_equal", table=table, field=field, value=value)()


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    pyiceberg: PyIcebergReader
    duckdb: WorkerReader
    spark_reader: WorkerReader
    spark: Spark

    @property
    def readers(self) -> tuple[Reader, ...]:
        return (self.spark_reader, self.duckdb, self.pyiceberg)


@contextmanager
def engines(folder: Path) -> Iterator[Engines]:
    """All readers, ready; `folder` takes their logs and the tables that Spark writes."""
    warehouse = folder / "warehouse"
    warehouse.mkdir()
    client = spark_server.client()
    of_spark = {
        "JAVA_HOME": str(java.FOR_SPARK.home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(client / "pyspark"),
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (
        _worker("spark", folder, client, of_spark, [str(warehouse)]) as spark,
        _worker("duckdb", folder, DUCKDB.folder(), {}, []) as duckdb,
    ):
        duckdb.wait_until_ready()
        spark.wait_until_ready()
        yield Engines(
            pyiceberg=PyIcebergReader(),
            duckdb=WorkerReader("duckdb", duckdb, reads_refs=False),
            spark_reader=WorkerReader("spark", spark, reads_refs=True),
            spark=Spark(spark, warehouse),
        )


def _worker(
    name: str, folder: Path, packages: Path, env: Mapping[str, str], arguments: Sequence[str]
) -> Worker:
    log = folder / f"{name}.log"
    module = f"tests.maintenance.differential.{name}_worker"
    command = die_with_parent([sys.executable, "-m", module, *arguments])
    path = os.pathsep.join([str(packages), str(REPOSITORY)])

    def start() -> subprocess.Popen[str]:
        with log.open("a") as errors:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", **env},
            )

    return Worker(start, log)
