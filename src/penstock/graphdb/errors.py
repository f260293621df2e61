"""What a graph database can say no with.

CypherError              400  RYUGRAPH_ERROR          the name its clients know
QueryInterrupted         408  QUERY_TIMEOUT
QueryOutOfMemory         507  QUERY_OUT_OF_MEMORY
EngineCrashed            500  GRAPH_ENGINE_CRASHED
EngineRestarted          503  GRAPH_ENGINE_RESTARTED  (retryable)
GraphFailed              500  DATABASE_ERROR
├── SchemaRefused             SCHEMA_CREATE_ERROR
└── LoadRefused               DATA_LOAD_ERROR
CapabilityMissing        422  CAPABILITY_MISSING      details.capability names it
"""

from __future__ import annotations

from penstock.kit.errors import InvalidInput, PenstockError, Unavailable


class CypherError(PenstockError):
    """The statement cannot be read, or fails on these data; the message is the engine's own."""

    code = "RYUGRAPH_ERROR"
    status = 400


class QueryInterrupted(PenstockError):
    """The engine stopped: the time was up, or nobody waits for the answer any more."""

    code = "QUERY_TIMEOUT"
    status = 408


class QueryOutOfMemory(PenstockError):
    """The query needed more memory than all running queries may take together; nothing else was
    touched."""

    code = "QUERY_OUT_OF_MEMORY"
    status = 507


class EngineCrashed(PenstockError):
    """The query crashed the graph engine, which was restarted; the graph is unchanged."""

    code = "GRAPH_ENGINE_CRASHED"


class EngineRestarted(Unavailable):
    """The graph engine was restarted while the query ran or waited; the query may be sent again."""

    code = "GRAPH_ENGINE_RESTARTED"


class GraphFailed(PenstockError):
    """The graph engine failed; its own words are in the message."""

    code = "DATABASE_ERROR"


class SchemaRefused(GraphFailed):
    """The engine cannot hold a column of that type."""

    code = "SCHEMA_CREATE_ERROR"


class LoadRefused(GraphFailed):
    """The files do not make a graph: one is missing or torn, a key is twice there or null, an edge
    has no end."""

    code = "DATA_LOAD_ERROR"


class CapabilityMissing(InvalidInput):
    """This graph engine cannot do that; `details` name the capability."""

    code = "CAPABILITY_MISSING"

    @classmethod
    def of(cls, backend: str, capability: str) -> CapabilityMissing:
        return cls(
            f"The backend {backend} cannot do this: it lacks the capability {capability}.",
            hint="Start an instance with another wrapper_type.",
            backend=backend,
            capability=capability,
        )


def out_of_memory(
    limit: int | None, *, of: str = "running queries may take together"
) -> QueryOutOfMemory:
    """The error of an allocation that failed at `limit` bytes; None means: at what the machine has."""
    bound = "what this machine has" if limit is None else f"the {limit // 2**20} MiB that {of}"
    return QueryOutOfMemory(
        f"The query needed more memory than {bound}.",
        hint="Ask for less at once (a smaller range, a LIMIT, fewer columns, no collect() of everything),"
        " or give the instance more memory.",
        limit_bytes=limit,
    )
