"""Trino's statement protocol in our own process, true to what a real coordinator was seen to do.

- POST registers; the first GET starts the query. Every page has its own slug, and its token is one
  higher.
- The latest page may be requested again; an older token is 410, an unknown one 404.
- A query that is not polled for `client_timeout` is abandoned; one that was only registered is
  dropped.
- A query is over when a response has no nextUri; `FINISHED` comes with one, twice.
- With an encoding requested by the client, rows come in segments: small ones inline, others to be
  fetched.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

import orjson
import pyarrow as pa

from tests.servers.http import Fault, HttpServer, Request, Response, as_json
from tests.servers.trino_engine import Engine, QueryError, Result

if TYPE_CHECKING:
    from collections.abc import Callable

_CODECS = {"json": None, "json+lz4": "lz4_raw", "json+zstd": "zstd"}
_COMPRESSED_FROM = 8192
_INLINE_UP_TO = 4096


@dataclass(slots=True, kw_only=True)
class Script:
    """How the next `times` queries whose SQL holds `match` behave: fail so, or run until `release`
    is set."""

    match: str
    error: QueryError | None = None
    release: asyncio.Event | None = None
    times: int = -1


@dataclass(slots=True, kw_only=True)
class Query:
    id: str
    sql: str
    headers: dict[str, str]
    encoding: str | None
    script: Script | None = None
    token: int = 0
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    state: str = "REGISTERED"
    error: QueryError | None = None
    result: Result | None = None
    pages_given: int = 0
    rows_given: int = 0
    farewell: int = 2
    seen: float = field(default_factory=time.monotonic)

    @property
    def over(self) -> bool:
        return self.state in ("FAILED", "FINISHED")

    def fail(self, error: QueryError) -> None:
        self.state, self.error = "FAILED", error


class TrinoFake:
    """Opened with `async with`; what it was asked is in `requests`, what goes wrong in `faults` and
    `scripts`."""

    def __init__(
        self, *, client_timeout: float = 300, page_rows: int = 2000, unload: bool = False
    ) -> None:
        self.engine = Engine(unload=unload)
        self.client_timeout = client_timeout
        self.page_rows = page_rows
        self.long_poll = 0.05
        self.scripts: list[Script] = []
        self.queries: dict[str, Query] = {}
        self.segments: dict[str, bytes] = {}
        self.acknowledged: list[str] = []
        self.before_segment: Callable[[], Any] | None = None
        self.storage_url: str | None = None
        self.redirect_url: str | None = None
        self.forget_page = 0
        self.forbidden_roles: set[str] = set()
        self.passwords: dict[str, str] = {}
        self._http = HttpServer(self._serve)
        self._numbers = count(1)

    async def __aenter__(self) -> TrinoFake:
        await self._http.__aenter__()
        self._reaper = asyncio.create_task(self._abandon())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reaper.cancel()
        await self._http.__aexit__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.port}"

    @property
    def requests(self) -> list[Request]:
        return self._http.requests

    @property
    def faults(self) -> list[Fault]:
        return self._http.faults

    def running(self) -> list[Query]:
        return [
            query
            for query in self.queries.values()
            if not query.over and query.state != "REGISTERED"
        ]

    async def _abandon(self) -> None:
        while True:
            await asyncio.sleep(self.client_timeout / 20)
            late = time.monotonic() - self.client_timeout
            for query in list(self.queries.values()):
                if query.seen < late and query.state == "REGISTERED":
                    del self.queries[query.id]
                elif query.seen < late and not query.over:
                    query.fail(
                        QueryError(
                            "ABANDONED_QUERY", f"Query {query.id} was abandoned by the client"
                        )
                    )

    async def _serve(self, request: Request) -> Response:
        if not self._is_known(request):
            return Response(status=401, body=b"Unauthorized")
        match [request.method, *request.path.strip("/").split("/")]:
            case ["POST", "v1", "statement"]:
                return self._register(request)
            case [method, "v1", "statement", stage, query_id, slug, token]:
                return await self._page(method, stage, query_id, slug, int(token))
            case ["GET", "v1", "spooled", "download", name]:
                return await self._segment(name)
            case ["GET", "v1", "spooled", "ack", name]:
                self.acknowledged.append(name)
                return Response(status=200 if self.segments.pop(name, None) is not None else 404)
            case [method, "v1", "query", query_id]:
                return self._query(method, query_id)
        return Response(status=404)

    def _is_known(self, request: Request) -> bool:
        kind, _, credentials = request.headers.get("authorization", "").partition(" ")
        if not self.passwords or "/spooled/" in request.path:
            return True
        user, _, password = (
            base64.b64decode(credentials).decode().partition(":")
            if kind == "Basic"
            else ("", "", credentials)
        )
        return self.passwords.get(user) == password

    def _register(self, request: Request) -> Response:
        role = unquote_plus(request.headers.get("x-trino-role", ""))
        if role and not (role.startswith("system=ROLE{") and role.endswith("}")):
            return Response(status=400, body=b"Error 400 Bad Request: Invalid X-Trino-Role header")
        if role and role.removeprefix("system=ROLE{").removesuffix("}") in self.forbidden_roles:
            refusal = (
                "io.trino.spi.security.AccessDeniedException: Access Denied: Cannot set role "
                f"{role}\n\tat io.trino"
            )
            return Response(status=500, body=refusal.encode())
        encodings = [
            encoding
            for encoding in request.headers.get("x-trino-query-data-encoding", "").split(",")
            if encoding in _CODECS
        ]
        query = Query(
            id=f"20261115_000000_{next(self._numbers):05d}_fake",
            sql=request.body.decode(),
            headers=request.headers,
            encoding=encodings[0] if encodings else None,
        )
        self.queries[query.id] = query
        return Response(body=self._answer(query, "queued", 1))

    async def _page(
        self, method: str, stage: str, query_id: str, slug: str, token: int
    ) -> Response:
        query = self.queries.get(query_id)
        if query is None or slug != _slug(query_id, stage, token):
            return Response(status=404, body=b"Error 404 Not Found: Query not found")
        query.seen = time.monotonic()
        if method == "DELETE":
            return self._cancel(query)
        if method == "HEAD":
            return Response(status=200 if stage == "executing" else 405)
        last, answer = query.answers.get(stage, (-1, b""))
        if token < last:
            return Response(status=410, body=b"Error 410 Gone: Invalid token")
        if token > last:
            query.token = token
            answer = await self._advance(query)
            query.answers[stage] = (token, answer)
        return Response(body=answer)

    async def _advance(self, query: Query) -> bytes:
        if query.state == "REGISTERED":
            query.state = "QUEUED"
            await self._start(query)
            return self._answer(query, "executing", 0)
        following = query.token + 1
        if query.error is not None:
            return self._answer(query, None, 0)
        query.state = "RUNNING"
        if query.script is not None and query.script.release is not None:
            try:
                await asyncio.wait_for(query.script.release.wait(), self.long_poll)
            except TimeoutError:
                return self._answer(query, "executing", following)
        if query.result is not None and query.rows_given < query.result.table.num_rows:
            page = await asyncio.to_thread(query.result.page, query.rows_given, self.page_rows)
            return self._answer(query, "executing", following, page=page)
        query.state = "FINISHED"
        if query.farewell:
            query.farewell -= 1
            return self._answer(query, "executing", following)
        return self._answer(query, None, 0)

    async def _start(self, query: Query) -> None:
        script = next(
            (script for script in self.scripts if script.match in query.sql and script.times), None
        )
        if script is not None and "LIMIT 0" not in query.sql:
            script.times -= 1
            query.script = script
            query.error = script.error
        try:
            query.result = await asyncio.to_thread(self.engine.run, query.sql)
        except QueryError as e:
            query.error = e

    def _answer(
        self, query: Query, stage: str | None, token: int, page: bytes | None = None
    ) -> bytes:
        """In the order of fields that Trino writes, and as compact."""
        error = query.error if stage is None else None
        if error is not None:
            query.state = "FAILED"
        parts: dict[str, Any] = {"id": query.id, "infoUri": f"{self.url}/ui/query.html?{query.id}"}
        if stage is not None:
            parts["nextUri"] = (
                f"{self.url}/v1/statement/{stage}/{query.id}"
                f"/{_slug(query.id, stage, token)}/{token}"
            )
        if query.result is not None and query.state != "QUEUED":
            parts["columns"] = query.result.columns
        if page is not None and query.result is not None:
            query.pages_given += 1
            query.rows_given += self.page_rows if query.pages_given == self.forget_page else 0
            parts["data"] = (
                orjson.Fragment(page) if query.encoding is None else self._spooled(query, page)
            )
            query.rows_given = min(query.rows_given + self.page_rows, query.result.table.num_rows)
        parts["stats"] = {"state": query.state, "queued": query.state == "QUEUED"}
        if error is not None:
            parts["error"] = {
                "message": error.message,
                "errorCode": 1,
                "errorName": error.name,
                "errorType": error.kind,
                "failureInfo": {"type": "io.trino.spi.TrinoException", "stack": []},
            }
        parts["warnings"] = []
        if query.result is not None and query.result.update is not None:
            parts["updateType"] = query.result.update
            if query.rows_given:
                parts["updateCount"] = query.result.table[0][0].as_py()
        return orjson.dumps(parts)

    def _spooled(self, query: Query, page: bytes) -> dict[str, Any]:
        encoding = query.encoding or "json"
        codec, rows = _CODECS[encoding], len(orjson.loads(page))
        compressed = codec is not None and len(page) >= _COMPRESSED_FROM
        raw = pa.Codec(codec).compress(page, asbytes=True) if compressed else page
        metadata = {"segmentSize": len(raw), "rowsCount": rows, "rowOffset": query.rows_given}
        if compressed:
            metadata["uncompressedSize"] = len(page)
        if len(page) <= _INLINE_UP_TO:
            segment = {
                "type": "inline",
                "data": base64.b64encode(raw).decode(),
                "metadata": metadata,
            }
        else:
            segment = {"type": "spooled", **self._kept(query, raw), "metadata": metadata}
        return {"encoding": encoding, "segments": [segment]}

    def _kept(self, query: Query, raw: bytes) -> dict[str, Any]:
        name = f"{query.id}-{query.pages_given}"
        self.segments[name] = raw
        return {
            "uri": f"{self.storage_url or self.url}/v1/spooled/download/{name}",
            "ackUri": f"{self.url}/v1/spooled/ack/{name}",
            "headers": {"X-Amz-Server-Side-Encryption-Customer-Key": [name]},
        }

    async def _segment(self, name: str) -> Response:
        if self.redirect_url is not None:
            return Response(status=303, headers={"Location": f"{self.redirect_url}/{name}"})
        if self.before_segment is not None:
            await self.before_segment()
        if name not in self.segments:
            return Response(status=500, body=b"java.io.IOException: Segment not found or expired")
        return Response(
            body=self.segments[name], headers={"Content-Type": "application/octet-stream"}
        )

    def _query(self, method: str, query_id: str) -> Response:
        query = self.queries.get(query_id)
        if query is None or query.state == "REGISTERED":
            return Response(status=410)
        if method == "DELETE":
            return self._cancel(query)
        code = (
            {"errorCode": {"name": query.error.name}}
            if query.error is not None and query.over
            else {}
        )
        return as_json({"queryId": query.id, "state": query.state, **code})

    def _cancel(self, query: Query) -> Response:
        if not query.over:
            query.fail(QueryError("USER_CANCELED", "Query was canceled"))
        return Response(status=204)


def _slug(query_id: str, stage: str, token: int) -> str:
    return "y" + hashlib.sha1(f"{query_id}/{stage}/{token}".encode()).hexdigest()
