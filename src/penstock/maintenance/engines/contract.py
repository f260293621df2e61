"""The interface of remote engines: run one SQL statement, polled by changing worker processes.

`begin` returns a handle that is stored before anything runs; `look` starts the statement if it is
not running yet and returns its state. A worker that dies between two calls loses nothing: the next
one continues from the stored handle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

import orjson

from penstock.kit.errors import PenstockError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.payloads import TableName


class EngineFailed(PenstockError):
    """The engine rejected the statement, or the statement failed."""

    code = "ENGINE_FAILED"


class EngineUnavailable(Unavailable):
    """The engine is unreachable or lost the statement; a retry may succeed."""

    code = "ENGINE_UNAVAILABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteQuery:
    """A statement on a remote engine: the id that the engine shows, and the handle to reach it."""

    query_id: str
    handle: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Still running: store `held`, then poll again, at once or after a pause."""

    held: RemoteQuery
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Finished, with result rows if the engine returns any."""

    rows: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    error: PenstockError


Look: TypeAlias = Running | Finished | Failed


class RemoteEngine(Protocol):
    @property
    def name(self) -> str:
        """The engine's name in results."""

    @property
    def client_timeout(self) -> float:
        """Seconds after which the engine drops a statement that is not polled."""

    def statement(
        self,
        action: Action,
        name: TableName,
        table: Table,
        context: ActionContext,
        *,
        dry_run: bool,
    ) -> str:
        """The action as SQL of this engine; Refused if it does not support it or an option."""

    def previews(self, action: Action) -> bool:
        """Whether the engine supports a dry run of the action that returns the affected files."""

    def owns_snapshot(self, query: RemoteQuery, summary: Mapping[str, str]) -> bool:
        """Whether a snapshot committed since the start belongs to this statement, by its
        summary."""

    async def begin(self, sql: str) -> RemoteQuery: ...

    async def look(self, query: RemoteQuery, sql: str, *, again: bool) -> Look:
        """Poll. `again`: another worker may have started the statement after `query` was stored."""

    async def cancel(self, query: RemoteQuery) -> None: ...

    async def release(self, query: RemoteQuery) -> None:
        """Free the statement on the engine; called after its result is stored."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


def trace(action: Action, name: TableName, context: ActionContext) -> str:
    """The leading SQL comment that identifies the job in the engine's query list.

    Slashes and dollars are JSON-escaped, so no name can close or nest the comment or be expanded
    as a variable.
    """
    fields = {
        "app": "penstock",
        "job": context.job_id,
        "attempt": context.attempt,
        "action": action.name,
        "table": str(name),
    }
    text = orjson.dumps(fields).decode().replace("/", "\\u002f").replace("$", "\\u0024")
    return f"/* {text} */"
