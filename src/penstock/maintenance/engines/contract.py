"""What an engine elsewhere must be able to do with one statement. Every call may come from another
process.

`begin` is what can be written down before anything runs; `look` starts the statement when it does
not run yet, and says how it is. So whoever dies between two calls has lost nothing: the next one
goes on from what is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

import orjson

from penstock.kit.errors import PenstockError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.payloads import TableName


class EngineFailed(PenstockError):
    """The engine says that the statement is wrong, or cannot be done."""

    code = "ENGINE_FAILED"


class EngineUnavailable(Unavailable):
    """The engine does not answer, or lost the statement; another attempt may help."""

    code = "ENGINE_UNAVAILABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A statement: by what name its engine shows it, and what reaches it."""

    query_id: str
    handle: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Write `held` down, then look again: `at_once`, or after a while."""

    held: Held
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The rows that it answered with, of an engine that answers with rows."""

    rows: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    error: PenstockError


Look: TypeAlias = Running | Finished | Failed


class RemoteEngine(Protocol):
    @property
    def name(self) -> str:
        """What results say of who made them."""

    @property
    def patience(self) -> float:
        """For how many seconds the engine keeps a statement that nobody asks after."""

    def statement(
        self, action: Action, name: TableName, table: Table, run: Run, *, dry_run: bool
    ) -> str:
        """What the action is there; Refused when there is no word for it or for one of its options."""

    def previews(self, action: Action) -> bool:
        """Whether the statement of a dry run may be sent: it changes nothing, and answers with
        files."""

    def made(self, held: Held, summary: Mapping[str, str]) -> bool:
        """Whether a snapshot that came since the beginning is this statement's, as far as its
        summary says."""

    async def begin(self, sql: str) -> Held: ...

    async def look(self, held: Held, sql: str, *, again: bool) -> Look:
        """`again`: somebody else may have looked since `held` was written down, and died."""

    async def cancel(self, held: Held) -> None: ...

    async def release(self, held: Held) -> None:
        """Its end is written down: the engine may forget it."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


def trace(action: Action, name: TableName, run: Run) -> str:
    """The comment that every statement begins with, so that it is found in the engine's own list.

    No name can end or nest it, nor ask for a variable: a slash and a dollar are written as JSON may
    write them.
    """
    said = {
        "app": "penstock",
        "job": run.job_id,
        "attempt": run.attempt,
        "action": action.name,
        "table": str(name),
    }
    text = orjson.dumps(said).decode().replace("/", "\\u002f").replace("$", "\\u0024")
    return f"/* {text} */"
