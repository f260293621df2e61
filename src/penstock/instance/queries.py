"""`POST /query`: Cypher in, rows or an Arrow stream out."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from penstock.graphdb.contract import GraphEngine, Interrupt, Result
from penstock.graphdb.errors import CapabilityMissing, CypherError
from penstock.guard.cypher import CypherQuery, check_cypher
from penstock.instance.client import gone
from penstock.instance.identity import Trusted
from penstock.instance.results import ARROW, arrow_stream, encode, fetch, stream_rows
from penstock.instance.room import EngineRoom
from penstock.instance.served import Graph, Served
from penstock.kit.errors import InvalidInput


class QueryBody(BaseModel):
    query: Annotated[str, Field(min_length=1, max_length=100_000, examples=["MATCH (n:Person) RETURN n LIMIT 10"])]
    parameters: dict[str, Any] = Field(default_factory=dict, examples=[{"name": "Ada"}])
    timeout_ms: Annotated[int, Field(ge=1)] | None = Field(None, description="The server's own, if unsaid.")
    max_rows: Annotated[int, Field(ge=1)] | None = Field(None, description="The server's own, which is the most.")


def router(served: Served) -> APIRouter:
    routes = APIRouter()

    @routes.post("/query")
    async def query(body: QueryBody, request: Request, caller: Trusted) -> Response:  # noqa: ARG001 - it must be one
        graph = served.graph
        asked = _Asked(served, body)
        began = time.perf_counter()
        try:
            if ARROW in request.headers.get("accept", ""):
                return await _stream(served, asked, request)
            content = await served.room.query(
                partial(_answer, graph, asked), timeout=asked.timeout, gone=partial(gone, request)
            )
        finally:
            served.tally.count(time.perf_counter() - began)
        return Response(content, media_type="application/json")

    return routes


class _Asked:
    """A request within the server's limits, its text judged."""

    def __init__(self, served: Served, body: QueryBody) -> None:
        limits = served.settings
        self.checked = check_cypher(body.query) if limits.guard else _unchecked(body)
        self.parameters: Mapping[str, Any] = {k: v for k, v in body.parameters.items() if k in self.checked.parameters}
        self.timeout = limits.timeout_seconds if body.timeout_ms is None else body.timeout_ms / 1000
        self.max_rows = min(body.max_rows or limits.max_rows, limits.max_rows)
        if self.timeout > limits.max_timeout_seconds:
            raise InvalidInput(f"timeout_ms is at most {int(limits.max_timeout_seconds * 1000)}.", field="timeout_ms")
        if missing := sorted(self.checked.parameters - body.parameters.keys()):
            raise CypherError(f"The query names ${missing[0]}, which is not among its parameters.", missing=missing)

    @property
    def capped(self) -> str:
        """The text with a cap of its own, where it has none: the engine need not make rows that nobody will see."""
        return f"{self.checked.text} LIMIT {self.max_rows + 1}" if self.checked.open_ended else self.checked.text


def _unchecked(body: QueryBody) -> CypherQuery:
    return CypherQuery(text=body.query, parameters=frozenset(body.parameters), open_ended=False)


def _answer(graph: Graph, asked: _Asked, cord: Interrupt) -> bytes:
    began = time.perf_counter()
    result = graph.engine.query(asked.capped, asked.parameters, timeout=asked.timeout, interrupt=cord)
    try:
        found = fetch(result, max_rows=asked.max_rows, own=graph.own_properties(), turn=graph.turn)
    finally:
        result.close()
    return encode(found, milliseconds=round((time.perf_counter() - began) * 1000))


async def _stream(served: Served, asked: _Asked, request: Request) -> Response:
    engine = served.graph.engine
    if not engine.capabilities.arrow:
        raise CapabilityMissing(served.settings.backend, "arrow")
    begun = await served.room.query(partial(_begin, engine, asked), timeout=asked.timeout, gone=partial(gone, request))
    return StreamingResponse(_chunks(served.room, begun), media_type=ARROW)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A stream whose first batch is made: what can go wrong has gone wrong before the answer's status is sent."""

    result: Result
    head: tuple[memoryview | bytes, ...]
    rest: Iterator[memoryview | bytes]


def _begin(engine: GraphEngine, asked: _Asked, cord: Interrupt) -> _Begun:
    result = engine.query(asked.checked.text, asked.parameters, timeout=asked.timeout, interrupt=cord)
    try:
        stream = arrow_stream(result.batches(stream_rows(result)))
        return _Begun(result=result, head=(next(stream), next(stream)), rest=stream)
    except BaseException:
        result.close()
        raise


async def _chunks(room: EngineRoom, begun: _Begun) -> AsyncIterator[memoryview | bytes]:
    """One batch is made while the one before is on its way, and no more."""
    coming = asyncio.ensure_future(room.run(lambda: next(begun.rest, None)))
    try:
        for piece in begun.head:
            yield piece
        while (chunk := await coming) is not None:
            coming = asyncio.ensure_future(room.run(lambda: next(begun.rest, None)))
            yield chunk
    finally:
        await asyncio.wait({coming})
        await room.run(begun.result.close)
