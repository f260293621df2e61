"""What an algorithm can say no with.

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
    """An id that was given as a parameter is of no node in the chosen part of the graph."""


class ExecutionNotFound(NotFound):
    pass


class AlgorithmTimeout(PenstockError):
    """Its time was up; give it a larger `timeout_ms`."""

    code = "ALGORITHM_TIMEOUT"
    status = 408


class AlgorithmFailed(PenstockError):
    """Its process ended badly; the message says why."""

    code = "ALGORITHM_FAILED"


class AlgorithmCancelled(AlgorithmFailed):
    """It was ended by somebody before it was done; nothing was written."""

    code = "ALGORITHM_CANCELLED"
    status = 409


class AlgorithmOutOfMemory(AlgorithmFailed):
    """It needed more memory than its process may have; nothing else was touched."""

    code = "ALGORITHM_OUT_OF_MEMORY"
    status = 507
