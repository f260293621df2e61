"""What a graph database can say no with.

CypherError              400  RYUGRAPH_ERROR          the name its clients know
QueryInterrupted         408  QUERY_TIMEOUT
GraphFailed              500  DATABASE_ERROR
├── SchemaRefused             SCHEMA_CREATE_ERROR
└── LoadRefused               DATA_LOAD_ERROR
CapabilityMissing        422  CAPABILITY_MISSING      details.capability names it
"""

from __future__ import annotations

from penstock.kit.errors import InvalidInput, PenstockError


class CypherError(PenstockError):
    """The statement cannot be read, or fails on these data; the message is the engine's own."""

    code = "RYUGRAPH_ERROR"
    status = 400


class QueryInterrupted(PenstockError):
    """The engine stopped: the time was up, or nobody waits for the answer any more."""

    code = "QUERY_TIMEOUT"
    status = 408


class GraphFailed(PenstockError):
    """The graph engine failed; its own words are in the message."""

    code = "DATABASE_ERROR"


class SchemaRefused(GraphFailed):
    """The engine cannot hold a column of that type."""

    code = "SCHEMA_CREATE_ERROR"


class LoadRefused(GraphFailed):
    """The files do not make a graph: one is missing or torn, a key is twice there or null, an edge has no end."""

    code = "DATA_LOAD_ERROR"


class CapabilityMissing(InvalidInput):
    """This graph engine cannot do that; `details` name the capability."""

    code = "CAPABILITY_MISSING"

    def __init__(self, backend: str, capability: str) -> None:
        super().__init__(
            f"The backend {backend} cannot do this: it lacks the capability {capability}.",
            hint="Start an instance with another wrapper_type.",
            backend=backend,
            capability=capability,
        )
