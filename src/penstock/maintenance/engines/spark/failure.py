"""Maps Spark's error messages to our errors, with a one-line message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.maintenance.engines.contract import EngineFailed, EngineUnavailable
from penstock.maintenance.errors import CommitConflict, CommitUnknown

if TYPE_CHECKING:
    from penstock.kit.errors import PenstockError

LONGEST = 500
_CONFLICTS = (
    "ValidationException",
    "CommitFailedException",
    "Cannot commit",
    "stale table metadata",
)
_UNKNOWN = ("CommitStateUnknownException",)
_PASSING = ("SparkContext was shut down", "SparkContext has been shutdown", "stopped SparkContext")
_WRAPPERS = re.compile(r"^(?:[\w.$]*(?:Exception|Error): |Error running query: |\[[A-Z_.]+\] )+")


def failure(message: str, *, classes: str = "") -> PenstockError:
    """`classes` is more text to classify the error by; it is not part of the message."""
    line, message = one_line(message), message + classes
    if any(word in message for word in _UNKNOWN):
        return CommitUnknown(f"Spark reports an unknown commit state: {line}")
    if any(word in message for word in _CONFLICTS):
        return CommitConflict(line)
    if any(word in message for word in _PASSING):
        return EngineUnavailable(line)
    return EngineFailed(line)


def one_line(message: str) -> str:
    """The first line, without wrapping exception classes and stack trace."""
    line = next(
        (text.strip() for text in message.splitlines() if text.strip()),
        "Spark sent no error message.",
    )
    return (_WRAPPERS.sub("", line) or line)[:LONGEST]
