"""Errors of the engines package.

InvalidInput
└── EngineQueryError   ENGINE_QUERY_FAILED   the statement, or a value in it, does not work
Internal
└── EngineError        ENGINE_FAILED         anything else
    └── EngineFull     ENGINE_OUT_OF_MEMORY  more memory than the engine was given
Unavailable
└── ScratchFull        SCRATCH_FULL          the disk of the scratch folder is full
"""

from __future__ import annotations

from penstock.kit.errors import Internal, InvalidInput, Unavailable


class EngineQueryError(InvalidInput):
    """The engine refused the query; the message has its reason."""

    code = "ENGINE_QUERY_FAILED"


class EngineError(Internal):
    code = "ENGINE_FAILED"


class EngineFull(EngineError):
    """A join was larger than the engine's memory limit."""

    code = "ENGINE_OUT_OF_MEMORY"


class ScratchFull(Unavailable):
    """The disk that holds the scratch folder is full; the message names the folder and the
    setting."""

    code = "SCRATCH_FULL"
