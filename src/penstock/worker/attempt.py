"""An attempt in this process, and the table of those we hold.

An attempt is RUNNING while its handler works, ENDED from its answer until that is written down,
GONE after. The step out of RUNNING is taken once, under the table's lock, by whoever comes first:
the handler, its deadline, or the last will of a process that must go. An attempt that was lost or
cancelled goes from RUNNING to GONE: it has nothing to say.
"""

from __future__ import annotations

import enum
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeAlias

from penstock.jobs.model import Failed, Fence, Parking, Release, Succeeded

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Sequence

    from penstock.jobs.handler import Stop
    from penstock.jobs.kinds import KindPolicy
    from penstock.jobs.model import Claimed

Writing: TypeAlias = Succeeded | Failed | Parking | Release
"""What an attempt has to write down, and nothing after it."""


class Phase(enum.Enum):
    RUNNING = "running"
    ENDED = "ended"
    GONE = "gone"


class Killable(Protocol):
    def kill(self) -> None: ...


class Attempt:
    __slots__ = (
        "_children",
        "_event",
        "_lock",
        "deadline",
        "job",
        "phase",
        "policy",
        "started",
        "stopped",
        "task",
        "undelivered",
        "writing",
    )

    def __init__(self, job: Claimed, policy: KindPolicy, now: float) -> None:
        self.job = job
        self.policy = policy
        self.started = now
        self.deadline = now + job.seconds_left
        self.phase = Phase.RUNNING
        self.stopped: Stop | None = None
        self.task: asyncio.Task[None] | None = None
        self.writing: Writing | None = None
        self.undelivered = False
        self._lock = threading.Lock()
        self._children: list[Killable] = []
        self._event: threading.Event | None = None

    @property
    def fence(self) -> Fence:
        return self.job.fence

    def stop(self, why: Stop) -> None:
        """From any thread: the handler is cancelled and its child processes are killed. The first
        reason stands."""
        with self._lock:
            if self.stopped is not None:
                return
            self.stopped = why
            event, children = self._event, list(self._children)
        if event is not None:
            event.set()
        for child in children:
            child.kill()
        self.cancel_task()

    def cancel_task(self) -> None:
        """By way of the loop's queue: a task that is cancelled before its first step would never
        run its `finally`."""
        if self.task is not None:
            with suppress(RuntimeError):  # the loop is closed, and the task with it
                self.task.get_loop().call_soon_threadsafe(self.task.cancel)

    def event(self) -> threading.Event:
        """Set when the attempt must stop. Made on demand: most jobs never ask."""
        with self._lock:
            if self._event is None:
                self._event = threading.Event()
                if self.stopped is not None:
                    self._event.set()
            return self._event

    def adopt(self, child: Killable) -> None:
        with self._lock:
            self._children.append(child)
            late = self.stopped is not None
        if late:
            child.kill()

    def disown(self, child: Killable) -> None:
        with self._lock:
            self._children.remove(child)


class Held:
    """The attempts whose fence we hold; used from every thread of the worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: dict[Attempt, None] = {}
        self._closed = False
        self.on_change: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._attempts)

    def add(self, attempts: Iterable[Attempt]) -> None:
        with self._lock:
            self._attempts.update(dict.fromkeys(attempts))

    def end(self, attempt: Attempt, writing: Writing) -> bool:
        """The attempt's answer, if it is the first one."""
        with self._lock:
            if attempt.phase is not Phase.RUNNING:
                return False
            attempt.writing = writing
            attempt.phase = Phase.ENDED
            return True

    def remove(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Those of them that were still here."""
        with self._lock:
            removed = [a for a in attempts if a in self._attempts]
            for attempt in removed:
                del self._attempts[attempt]
                attempt.phase = Phase.GONE
        self._changed()
        return removed

    def all(self) -> Sequence[Attempt]:
        with self._lock:
            return list(self._attempts)

    def running(self) -> Sequence[Attempt]:
        return [a for a in self.all() if a.phase is Phase.RUNNING]

    def close(self) -> None:
        """Nothing will be added any more."""
        self._closed = True
        self._changed()

    @property
    def drained(self) -> bool:
        return self._closed and not self._attempts

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()
