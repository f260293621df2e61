"""What Spark says when it cannot, in one line; and what of it is another writer's doing."""

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


def failure(said: str, *, classes: str = "") -> PenstockError:
    """`classes` are more words to judge by, which nobody wants to read."""
    line, said = one_line(said), said + classes
    if any(word in said for word in _UNKNOWN):
        return CommitUnknown(f"Spark does not know whether it committed: {line}")
    if any(word in said for word in _CONFLICTS):
        return CommitConflict(line)
    if any(word in said for word in _PASSING):
        return EngineUnavailable(line)
    return EngineFailed(line)


def one_line(said: str) -> str:
    """The first line, without the classes that wrap the message; the stack goes."""
    line = next((each.strip() for each in said.splitlines() if each.strip()), "Spark says nothing.")
    return (_WRAPPERS.sub("", line) or line)[:LONGEST]
