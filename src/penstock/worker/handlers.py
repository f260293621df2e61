"""Handlers: what a worker does for each kind of job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from penstock.jobs.model import Claimed, JobSpec, Json
from penstock.kit.errors import InvalidInput
from penstock.kit.ids import check_name

if TYPE_CHECKING:
    from penstock.worker.context import JobContext

Job: TypeAlias = Claimed


@dataclass(frozen=True, slots=True)
class Result:
    """The job is done. `spawn` is enqueued in the transaction that records it."""

    value: Json = None
    spawn: Sequence[JobSpec] = ()


@dataclass(frozen=True, slots=True)
class Park:
    """The work goes on elsewhere: look again after a while, here or in another worker, with this state."""

    state: Json
    after_seconds: float
    unhandled: bool = False


Answer: TypeAlias = Result | Park
Handler: TypeAlias = Callable[[Job, "JobContext"], Awaitable[Answer]]


class Handlers:
    """Handlers by kind."""

    def __init__(self, handlers: Mapping[str, Handler] | None = None) -> None:
        self._handlers: dict[str, Handler] = {}
        for kind, handler in (handlers or {}).items():
            self.add(kind, handler)

    def add(self, kind: str, handler: Handler) -> None:
        check_name(kind, "Kind")
        if kind in self._handlers:
            raise InvalidInput(f"Kind {kind} has a handler already.")
        self._handlers[kind] = handler

    def get(self, kind: str) -> Handler | None:
        return self._handlers.get(kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)
