"""`POST /query`: runs Cypher and returns rows or an Arrow stream."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.types import Send

from penstock.graph_server.engine.engine import Answer
from penstock.graph_server.engine.engine_work import Question
from penstock.graph_server.engine.wire import PIECE_BYTES
from penstock.graph_server.http.body_limit import QueryRoute
from penstock.graph_server.http.client_connection import gone
from penstock.graph_server.http.identity import Trusted
from penstock.graph_server.queries.results import ARROW
from penstock.graph_server.served_graph import Served
from penstock.graphdb.errors import CypherError
from penstock.kit import logging
from penstock.kit.errors import InvalidInput
from penstock.kit.json_value import JsonValue
from penstock.kit.statement_digest import statement_digest

log = logging.get(__name__)
JSON = "application/json"


MAX_PARAMETERS = 1000
Parameters = Annotated[
    dict[Annotated[str, Field(max_length=255)], JsonValue], Field(max_length=MAX_PARAMETERS)
]


class QueryBody(BaseModel):
    query: Annotated[
        str,
        Field(min_length=1, max_length=100_000, examples=["MATCH (n:Person) RETURN n LIMIT 10"]),
    ]
    parameters: Parameters = Field(default_factory=dict, examples=[{"name": "Ada"}])
    timeout_ms: Annotated[int, Field(ge=1)] | None = Field(
        None, description="The server's own, if unsaid."
    )
    max_rows: Annotated[int, Field(ge=1)] | None = Field(
        None, description="The server's own, which is the most."
    )


def router(served: Served) -> APIRouter:
    routes = APIRouter(route_class=QueryRoute)

    @routes.post("/query")
    async def query(body: QueryBody, request: Request, caller: Trusted) -> Response:  # noqa: ARG001 - it must be one
        check_values(body.parameters)
        return await run(served, body, request)

    return routes


async def run(served: Served, body: QueryBody, request: Request) -> Response:
    """`body` was checked by `check_values`."""
    _note(body, request)
    engine, timeout = served.graph.engine, timeout_of(served, body.timeout_ms)
    is_stream = ARROW in request.headers.get("accept", "")
    ask = engine.stream if is_stream else engine.query
    with served.tally.counted():
        answer = await ask(
            partial(_question, served, body), timeout=timeout, gone=partial(gone, request)
        )
    return await respond(answer, ARROW if is_stream else JSON)


def check_values(parameters: Mapping[str, JsonValue]) -> None:
    """Refuse a value that cannot be written as JSON again: each engine fails at it in its own way,
    and one that nests deeply does not even get to the engine's process."""
    try:
        orjson.dumps(parameters)
    except TypeError as e:
        raise CypherError(
            f"A parameter has a value that no engine can hold: {e}.",
            hint="Integers have 64 bits, texts are valid Unicode, and lists and maps nest up to"
            " 250 levels.",
        ) from e


def _note(body: QueryBody, request: Request) -> None:
    """Whoever sent it is known by now; the text itself is theirs and not for logs."""
    log.info(
        "statement",
        surface="cypher",
        author=request.headers.get("x-penstock-user", ""),
        statement_sha256=statement_digest(body.query),
        request_id=request.headers.get("x-request-id", ""),
    )


def timeout_of(served: Served, milliseconds: int | None) -> float:
    limits = served.settings
    timeout = limits.timeout_seconds if milliseconds is None else milliseconds / 1000
    if timeout > limits.max_timeout_seconds:
        raise InvalidInput(
            f"timeout_ms is at most {int(limits.max_timeout_seconds * 1000)}.", field="timeout_ms"
        )
    return timeout


async def respond(answer: Answer, media_type: str) -> Response:
    """A small answer at once, a large one as fast as the client reads it."""
    if answer.length is not None and answer.length <= PIECE_BYTES:
        return Response(await answer.whole(), media_type=media_type)
    return _Streamed(answer, media_type)


class _Streamed(StreamingResponse):
    def __init__(self, answer: Answer, media_type: str) -> None:
        length = {} if answer.length is None else {"Content-Length": str(answer.length)}
        super().__init__(answer.pieces(), headers=length, media_type=media_type)
        self._answer = answer

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            self._answer.close()


def _question(served: Served, body: QueryBody, timeout: float) -> Question:
    limits = served.settings
    return Question(
        text=body.query,
        parameters=body.parameters,
        timeout=timeout,
        max_rows=min(body.max_rows or limits.max_rows, limits.max_rows),
        guard=limits.guard,
    )
