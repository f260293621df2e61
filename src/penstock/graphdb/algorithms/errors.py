"""Errors of algorithm runs.

AlgorithmNotFound        404  ALGORITHM_NOT_FOUND
NodeNotFound             404  RESOURCE_NOT_FOUND
ExecutionNotFound        404  RESOURCE_NOT_FOUND
AlgorithmTimeout         408  ALGORITHM_TIMEOUT
AlgorithmFailed          500  ALGORITHM_FAILED
├── AlgorithmCancelled   409  ALGORITHM_CANCELLED
└── AlgorithmOutOfMemory 507  ALGORITHM_OUT_OF_MEMORY
"""

from __future__ import annotations

from penstock.kit.errors import NotFound, PenstockError


class AlgorithmNotFound(NotFound):
    """No algorithm has this name; `GET /algo/algorithms` lists them."""

    code = "ALGORITHM_NOT_FOUND"


class NodeNotFound(NotFound):
    """A parameter is the id of a node that is not in the selected part of the graph."""


class ExecutionNotFound(NotFound):
    pass


class AlgorithmTimeout(PenstockError):
    """The run timed out; use a larger `timeout_ms`."""

    code = "ALGORITHM_TIMEOUT"
    status = 408


class AlgorithmFailed(PenstockError):
    """The algorithm's process failed; the message gives the reason."""

    code = "ALGORITHM_FAILED"


class AlgorithmCancelled(AlgorithmFailed):
    """The run was cancelled before it completed; nothing was written."""

    code = "ALGORITHM_CANCELLED"
    status = 409


class AlgorithmOutOfMemory(AlgorithmFailed):
    """The run exceeded its process's memory limit; nothing else is affected."""

    code = "ALGORITHM_OUT_OF_MEMORY"
    status = 507
