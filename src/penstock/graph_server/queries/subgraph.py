"""`POST /subgraph`: the nodes around some start nodes, and every edge between them."""

from functools import partial
from typing import Annotated, Literal, Self

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, model_validator

from penstock.graph_server.engine.neighbourhood import Neighborhood
from penstock.graph_server.http.body_limit import QueryRoute
from penstock.graph_server.http.client_connection import gone
from penstock.graph_server.http.identity import Trusted
from penstock.graph_server.queries import graph_files
from penstock.graph_server.queries.query import Parameters, check_values, respond, timeout_of
from penstock.graph_server.served_graph import Served

MOST_NODES = 50_000
NodeId = Annotated[str, Field(max_length=8192)]
Name = Annotated[str, Field(max_length=255)]


class SubgraphBody(BaseModel):
    start: list[NodeId] | None = Field(
        None, min_length=1, max_length=10_000, examples=[["Person:1"]]
    )
    cypher: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(
        None,
        description="A query; the nodes in its answer are the start.",
        examples=["MATCH (n:Person) RETURN n"],
    )
    parameters: Parameters = Field(default_factory=dict)
    hops: Annotated[int, Field(ge=0, le=10)] = 1
    relationship_types: list[Name] | None = Field(
        None, max_length=1000, description="Only these; all, if unsaid."
    )
    limit: Annotated[int, Field(ge=1, le=MOST_NODES)] = Field(1000, description="Nodes at most.")
    format: Literal["json", "arrow", "graphml", "gexf"] = "json"
    timeout_ms: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def has_one_start(self) -> Self:
        if (self.start is None) == (self.cypher is None):
            raise ValueError("give either start or cypher")
        return self


def router(served: Served) -> APIRouter:
    routes = APIRouter(route_class=QueryRoute)

    @routes.post("/subgraph")
    async def subgraph(body: SubgraphBody, request: Request, caller: Trusted) -> Response:  # noqa: ARG001 - it must be one
        check_values(body.parameters)
        timeout = timeout_of(served, body.timeout_ms)
        with served.tally.counted():
            answer = await served.graph.engine.subgraph(
                partial(_wish, body), timeout=timeout, gone=partial(gone, request)
            )
        return await respond(answer, graph_files.MEDIA[body.format])

    return routes


def _wish(body: SubgraphBody, timeout: float) -> Neighborhood:
    types = body.relationship_types
    return Neighborhood(
        start=None if body.start is None else tuple(body.start),
        cypher=body.cypher,
        parameters=body.parameters,
        hops=body.hops,
        relationship_types=None if types is None else tuple(types),
        limit=body.limit,
        format=body.format,
        timeout=timeout,
    )
