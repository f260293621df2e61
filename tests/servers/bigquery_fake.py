"""BigQuery in our own process: the REST half of jobs and tables, and the Storage Read API over
gRPC.

- A job is inserted under the caller's name; a second job of that name is a 409. It runs until it
  is done or cancelled, and `queries` is polled until `jobComplete`. A dry run returns the schema
  and the statement type.
- A result is stored in an anonymous table. A read session over it has at most the requested number
  of streams, and none when there are no rows. A stream's first response has the Arrow schema; a
  stream can be read again from any row.
- Every NUMERIC is sent as decimal128(38, 9) and every BIGNUMERIC as decimal256(76, 38), whatever
  was declared.

Queries are answered by DuckDB, or by `canned`.
"""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import duckdb
import grpc
import orjson
import pyarrow as pa
import sqlglot
from google.cloud.bigquery_storage_v1 import types as messages
from sqlglot import exp

from tests.servers.http import Fault, HttpServer, Request, Response, as_json

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT, DATASET, LOCATION = "lake-123", "shop", "EU"
TOKEN = "ya29.t0ken"
_BASE = f"/bigquery/v2/projects/{PROJECT}"
_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.float64(): "FLOAT",
    pa.string(): "STRING",
    pa.binary(): "BYTES",
    pa.time64("us"): "TIME",
    pa.timestamp("us"): "DATETIME",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}
_NUMERIC_SCALE = 9


class Refusal(Exception):
    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    fields: list[dict[str, Any]]
    table: pa.Table
    kind: str = "SELECT"


@dataclass(slots=True, kw_only=True)
class Job:
    id: str
    document: dict[str, Any]
    result: Result
    done: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False
    error: dict[str, str] | None = None


class BigQueryFake:
    """Opened with `async with`; what it was asked is in `requests` and `calls`, what goes wrong in
    `faults`."""

    def __init__(self) -> None:
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'")
        self.canned: dict[str, Result] = {}
        self.job_errors: dict[str, dict[str, str]] = {}
        self.declared: dict[str, dict[str, Any]] = {}
        self.jobs: dict[str, Job] = {}
        self.sessions: dict[str, pa.Table] = {}
        self.calls: list[tuple[str, int]] = []
        self.breaks: list[tuple[int, grpc.StatusCode | None]] = []
        """After how many answers a call ends, and how; one entry a call. None means that it falls
        silent."""
        self.batch_rows = 20_000
        self.needs_token = False
        self.streaming = 0
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._http = HttpServer(self._serve)
        self._pool = ThreadPoolExecutor(8)
        self._grpc = grpc.server(self._pool, options=[("grpc.max_send_message_length", -1)])
        self._grpc.add_generic_rpc_handlers((self._handlers(),))
        self.storage_port = self._grpc.add_insecure_port("127.0.0.1:0")

    async def __aenter__(self) -> BigQueryFake:
        await self._http.__aenter__()
        self._grpc.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._grpc.stop(0).wait)
        self._pool.shutdown(wait=False)
        await self._http.__aexit__()
        self.duck.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.port}"

    @property
    def storage_url(self) -> str:
        return f"http://127.0.0.1:{self.storage_port}"

    @property
    def requests(self) -> list[Request]:
        return self._http.requests

    @property
    def faults(self) -> list[Fault]:
        return self._http.faults

    def load(self, name: str, table: pa.Table) -> None:
        self.duck.register("incoming", table)
        self.duck.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM incoming')
        self.duck.unregister("incoming")

    def running(self) -> int:
        return sum(not job.done.is_set() for job in self.jobs.values()) + self.streaming

    async def _serve(self, request: Request) -> Response:
        try:
            if request.path == "/token":
                return as_json({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})
            if self.needs_token and request.headers.get("authorization") != f"Bearer {TOKEN}":
                raise Refusal(401, "authError", "Request had invalid authentication credentials.")
            return await self._route(request)
        except Refusal as e:
            error = {
                "code": e.status,
                "message": e.message,
                "errors": [{"reason": e.reason, "message": e.message}],
            }
            return as_json({"error": error}, e.status)

    async def _route(self, request: Request) -> Response:
        path = unquote(request.path.removeprefix(_BASE)).strip("/").split("/")
        match (request.method, *path):
            case ("POST", "jobs"):
                return as_json(self._insert(orjson.loads(request.body)))
            case ("GET", "jobs", number):
                return as_json(self._told(self._job(number, request)))
            case ("POST", "jobs", number, "cancel"):
                job = self._job(number, request)
                job.cancelled = True
                job.done.set()
                return as_json({"job": self._told(job)})
            case ("GET", "queries", number):
                return as_json(await self._look(self._job(number, request)))
            case ("GET", "datasets"):
                return as_json(self._datasets(parse_qs(request.query)))
            case ("GET", "datasets", dataset, "tables"):
                return as_json({"tables": [_listed(name, dataset) for name in self._table_names()]})
            case ("GET", "datasets", _, "tables", name):
                return as_json(self._table(name))
            case _:
                raise Refusal(404, "notFound", f"Not found: {request.path}")

    def _insert(self, document: dict[str, Any]) -> dict[str, Any]:
        configuration = document["configuration"]
        sql = configuration["query"]["query"]
        dry = configuration.get("dryRun", False)
        result = self._answer(sql, rows=not dry)
        if dry:
            statistics = {"statementType": result.kind, "schema": {"fields": result.fields}}
            reference = {"projectId": PROJECT, "location": LOCATION}
            return {
                "jobReference": reference,
                "status": {"state": "DONE"},
                "statistics": {"query": statistics},
            }
        number = document["jobReference"]["jobId"]
        if number in self.jobs:
            raise Refusal(409, "duplicate", f"Already Exists: Job {number}")
        job = Job(id=number, document=document, result=result, error=self.job_errors.get(sql))
        self.jobs[number] = job
        if "endless" not in sql:
            job.done.set()
        return self._told(job)

    def _job(self, number: str, request: Request) -> Job:
        if number not in self.jobs or parse_qs(request.query).get("location") != [LOCATION]:
            raise Refusal(404, "notFound", f"Not found: Job {number}")
        return self.jobs[number]

    def _told(self, job: Job) -> dict[str, Any]:
        query = {
            **job.document["configuration"]["query"],
            "destinationTable": {
                "projectId": PROJECT,
                "datasetId": "_anonymous",
                "tableId": f"anon-{job.id}",
            },
        }
        error = (
            {"reason": "stopped", "message": "Job execution was cancelled"}
            if job.cancelled
            else job.error
        )
        status = {
            "state": "DONE" if job.done.is_set() else "RUNNING",
            **({"errorResult": error} if error else {}),
        }
        reference = {"projectId": PROJECT, "jobId": job.id, "location": LOCATION}
        return {"configuration": {"query": query}, "jobReference": reference, "status": status}

    async def _look(self, job: Job) -> dict[str, Any]:
        try:
            await asyncio.wait_for(job.done.wait(), 0.05)
        except TimeoutError:
            return {"jobComplete": False}
        if job.error is not None:
            raise Refusal(400, job.error["reason"], job.error["message"])
        return {"jobComplete": True, "totalRows": str(job.result.table.num_rows)}

    def _answer(self, sql: str, *, rows: bool) -> Result:
        if sql in self.canned:
            return self.canned[sql]
        try:
            trees = [
                tree
                for tree in sqlglot.parse(sql, read="bigquery")
                if tree is not None and tree.key != "semicolon"
            ]
        except sqlglot.ParseError as e:
            raise Refusal(
                400, "invalidQuery", f"Syntax error: {e.errors[0]['description']}"
            ) from None
        if len(trees) > 1:
            return Result(fields=[], table=pa.table({}), kind="SCRIPT")
        [tree] = trees
        if not isinstance(tree, exp.Query):
            if isinstance(tree, exp.Delete | exp.Drop | exp.Create):
                return Result(fields=[], table=pa.table({}), kind=tree.key.upper())
            raise Refusal(400, "invalidQuery", "Syntax error")
        if twice := [
            name
            for name in tree.named_selects
            if tree.named_selects.count(name) > 1 and name != "*"
        ]:
            raise Refusal(400, "invalidQuery", f"Duplicate column names in the result: {twice[0]}")
        return self._asked(tree.sql("duckdb"), rows=rows)

    def _asked(self, sql: str, *, rows: bool) -> Result:
        try:
            result: pa.Table = self.duck.sql(
                sql if rows else f"SELECT * FROM ({sql}) LIMIT 0"
            ).to_arrow_table()
        except duckdb.Error as e:
            raise Refusal(400, "invalidQuery", str(e).partition("\n")[0]) from None
        return Result(fields=[_field(field) for field in result.schema], table=_sent(result))

    def _table_names(self) -> list[str]:
        return [
            name
            for (name,) in self.duck.execute(
                "SELECT table_name FROM duckdb_tables() ORDER BY 1"
            ).fetchall()
        ]

    def _datasets(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """Two pages of one dataset each."""
        if "pageToken" not in query:
            return {
                "datasets": [{"datasetReference": {"datasetId": DATASET}}],
                "nextPageToken": "more",
            }
        return {"datasets": [{"datasetReference": {"datasetId": "other"}}]}

    def _table(self, name: str) -> dict[str, Any]:
        if name.startswith("anon-"):
            result = self.jobs[name.removeprefix("anon-")].result
        elif name in self._table_names():
            result = self._asked(f'SELECT * FROM "{name}"', rows=False)
        else:
            raise Refusal(404, "notFound", f"Not found: Table {name}")
        table = {"tableReference": {"tableId": name}, "numBytes": str(result.table.nbytes)}
        table["numRows"] = str(result.table.num_rows)
        return {**table, "schema": {"fields": result.fields}, **self.declared.get(name, {})}

    def _handlers(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            "google.cloud.bigquery.storage.v1.BigQueryRead",
            {
                "CreateReadSession": grpc.unary_unary_rpc_method_handler(
                    self._create,
                    request_deserializer=messages.CreateReadSessionRequest.deserialize,
                    response_serializer=messages.ReadSession.serialize,
                ),
                "ReadRows": grpc.unary_stream_rpc_method_handler(
                    self._rows,
                    request_deserializer=messages.ReadRowsRequest.deserialize,
                    response_serializer=messages.ReadRowsResponse.serialize,
                ),
            },
        )

    def _admit(self, context: grpc.ServicerContext, routing: str) -> None:
        sent = dict(context.invocation_metadata())
        if self.needs_token and sent.get("authorization") != f"Bearer {TOKEN}":
            context.abort(
                grpc.StatusCode.UNAUTHENTICATED, "Request had invalid authentication credentials."
            )
        if unquote(sent.get("x-goog-request-params", "")) != routing:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Missing routing header")

    def _create(self, request: Any, context: grpc.ServicerContext) -> Any:
        asked = request.read_session
        self._admit(context, f"read_session.table={asked.table}")
        match = re.fullmatch(r"projects/[^/]+/datasets/[^/]+/tables/anon-(\w+)", asked.table)
        if (
            match is None
            or match[1] not in self.jobs
            or asked.data_format != messages.DataFormat.ARROW
        ):
            context.abort(grpc.StatusCode.NOT_FOUND, f"Not found: Table {asked.table}")
            return None
        table = self.jobs[match[1]].result.table
        name = f"projects/{PROJECT}/locations/eu/sessions/s{next(self._numbers)}"
        streams = min(request.max_stream_count or 1, table.num_rows)
        step = -(-table.num_rows // streams) if streams else 0
        session = messages.ReadSession(name=name, estimated_row_count=table.num_rows)
        for number in range(streams):
            self.sessions[f"{name}/streams/{number}"] = table.slice(number * step, step)
            session.streams.append(messages.ReadStream(name=f"{name}/streams/{number}"))
        return session

    def _rows(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        self._admit(context, f"read_stream={request.read_stream}")
        with self._lock:
            self.calls.append((request.read_stream, request.offset))
            self.streaming += 1
            after, code = self.breaks.pop(0) if self.breaks else (-1, grpc.StatusCode.OK)
        context.add_callback(self._left)
        if request.read_stream not in self.sessions:
            context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                "there was an error operating on the session: expired",
            )
        table = self.sessions[request.read_stream].slice(request.offset)
        for number, batch in enumerate(
            table.combine_chunks().to_batches(max_chunksize=self.batch_rows)
        ):
            if number == after:
                _break_off(context, code)
            yield _message(batch, with_schema=number == 0)
        if after >= 0:
            _break_off(context, code)

    def _left(self) -> None:
        with self._lock:
            self.streaming -= 1


def _break_off(context: grpc.ServicerContext, code: grpc.StatusCode | None) -> None:
    if code is not None:
        context.abort(code, "the server broke off")
    left = threading.Event()
    if context.add_callback(left.set):
        left.wait()


def _message(batch: pa.RecordBatch, *, with_schema: bool) -> Any:
    answer = messages.ReadRowsResponse(row_count=batch.num_rows)
    answer.arrow_record_batch.serialized_record_batch = batch.serialize().to_pybytes()
    if with_schema:
        answer.arrow_schema.serialized_schema = batch.schema.serialize().to_pybytes()
    return answer


def _listed(name: str, dataset: str) -> dict[str, Any]:
    return {
        "tableReference": {"projectId": PROJECT, "datasetId": dataset, "tableId": name},
        "type": "TABLE",
    }


def _field(column: pa.Field) -> dict[str, Any]:
    kind = column.type
    if pa.types.is_integer(kind):
        return {"name": column.name, "type": "INTEGER", "mode": "NULLABLE"}
    if pa.types.is_decimal(kind):
        name = "NUMERIC" if kind.scale <= _NUMERIC_SCALE else "BIGNUMERIC"
        digits = {"precision": str(kind.precision), "scale": str(kind.scale)}
        return {"name": column.name, "type": name, "mode": "NULLABLE", **digits}
    return {"name": column.name, "type": _NAMES[kind], "mode": "NULLABLE"}


def _sent(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([(field.name, _wire_type(field.type)) for field in table.schema]))


def _wire_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, 9) if kind.scale <= _NUMERIC_SCALE else pa.decimal256(76, 38)
    return kind
