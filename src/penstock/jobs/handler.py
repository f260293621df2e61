"""The contract between a worker and the handlers of job kinds.

Workloads write handlers against this module and know nothing of the worker that runs them.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, TypeVarTuple

from penstock.jobs.model import Claimed, Fence, JobSpec, Json
from penstock.kit.errors import InvalidInput
from penstock.kit.ids import check_name

if TYPE_CHECKING:
    import threading

    from structlog.typing import FilteringBoundLogger

Job: TypeAlias = Claimed
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Stop(enum.StrEnum):
    """Why a handler must end."""

    CANCELLED = "cancelled"
    LOST = "lost"
    DEADLINE = "deadline"
    SHUTDOWN = "shutdown"


class Stopped(Exception):
    """Raised in a handler by `ctx.check()`; let it through."""

    def __init__(self, why: Stop) -> None:
        super().__init__(f"The attempt must stop: {why}.")
        self.why = why


class JobContext(Protocol):
    """What a handler may ask of the worker that runs it.

    All but `in_thread` and `in_process` may be called from any thread.
    """

    @property
    def fence(self) -> Fence: ...

    @property
    def deadline(self) -> float:
        """When the attempt must be over, on the clock of `time.monotonic()`."""
        ...

    @property
    def seconds_left(self) -> float: ...

    @property
    def cancelled(self) -> threading.Event:
        """Set when the attempt must stop. Coroutines are cancelled anyway; code in threads watches
        this."""
        ...

    @property
    def log(self) -> FilteringBoundLogger: ...

    def check(self) -> None:
        """Raise `Stopped` when the attempt must stop: cancelled, lost, out of time, or a
        shutdown.
        """
        ...

    def progress(
        self, *, rows: int | None = None, percent: float | None = None, **more: Json
    ) -> None:
        """Report the job's progress so far. Sent at most once a second; omitted values stay as they
        are."""
        ...

    async def in_thread(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run blocking work in a thread. It cannot be killed: let it call `check()` or watch
        `cancelled`."""
        ...

    async def in_process(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run an importable function in a child process that is killed when the job is stopped."""
        ...


def query_trace(fence: Fence) -> str:
    """The name under which an attempt's queries appear at the source."""
    return f"penstock-job-{fence.job_id}-attempt-{fence.attempt_id}"


@dataclass(frozen=True, slots=True)
class Result:
    """The job is done. `spawn` is enqueued in the transaction that records it."""

    value: Json = None
    spawn: Sequence[JobSpec] = ()


@dataclass(frozen=True, slots=True)
class Park:
    """The work goes on elsewhere: look again after a while, here or in another worker, with this
    state."""

    state: Json
    after_seconds: float
    unhandled: bool = False


Answer: TypeAlias = Result | Park
Handler: TypeAlias = Callable[[Job, JobContext], Awaitable[Answer]]


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
