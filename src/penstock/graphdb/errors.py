"""Errors of the graph database backends.

CypherError              400  RYUGRAPH_ERROR          the wire name, for every backend
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
    """The statement is invalid, or fails on this data; the message comes from the engine."""

    code = "RYUGRAPH_ERROR"
    status = 400


class QueryInterrupted(PenstockError):
    """The query timed out or was cancelled."""

    code = "QUERY_TIMEOUT"
    status = 408


class QueryOutOfMemory(PenstockError):
    """The query needed more memory than all running queries may use together; other queries are
    not affected."""

    code = "QUERY_OUT_OF_MEMORY"
    status = 507


class EngineCrashed(PenstockError):
    """The query crashed the graph engine, which was restarted; the graph is unchanged."""

    code = "GRAPH_ENGINE_CRASHED"


class EngineRestarted(Unavailable):
    """The graph engine was restarted while the query ran or waited; it can be retried."""

    code = "GRAPH_ENGINE_RESTARTED"


class GraphFailed(PenstockError):
    """The graph engine failed; the message comes from the engine."""

    code = "DATABASE_ERROR"


class SchemaRefused(GraphFailed):
    """The engine does not support a column of that type."""

    code = "SCHEMA_CREATE_ERROR"


class LoadRefused(GraphFailed):
    """The files cannot be loaded: one is missing or damaged, a key is duplicate or null, an edge
    has a missing endpoint."""

    code = "DATA_LOAD_ERROR"


class CapabilityMissing(InvalidInput):
    """This graph engine lacks a capability; `details` name it."""

    code = "CAPABILITY_MISSING"

    @classmethod
    def of(cls, backend: str, capability: str) -> CapabilityMissing:
        return cls(
            f"The backend {backend} does not support this: it lacks the capability {capability}.",
            hint="Start an instance with another wrapper_type.",
            backend=backend,
            capability=capability,
        )


def out_of_memory(
    limit: int | None, *, of: str = "running queries may use together"
) -> QueryOutOfMemory:
    """The error of an allocation that failed at `limit` bytes; None means the machine's memory."""
    bound = "what this machine has" if limit is None else f"the {limit // 2**20} MiB that {of}"
    return QueryOutOfMemory(
        f"The query needed more memory than {bound}.",
        hint="Request less at once (a smaller range, a LIMIT, fewer columns, no collect() of"
        " everything), or give the instance more memory.",
        limit_bytes=limit,
    )
