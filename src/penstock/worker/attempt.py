"""An attempt in this process, and the table of attempts that the worker holds.

An attempt is RUNNING while its handler works, ENDED until its outcome is written, then GONE. It
leaves RUNNING once, under the table's lock, by the first of: the handler's answer, its deadline, or
the shutdown handler. An attempt that was lost or cancelled goes from RUNNING to GONE, because it
has no outcome to write.
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
"""The final write of an attempt."""


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
        """From any thread: cancel the handler and kill its child processes. The first reason is
        kept."""
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
        """Cancel through the loop's queue: a task cancelled before its first step would not run
        its `finally`."""
        if self.task is not None:
            with suppress(RuntimeError):  # the loop is closed, and the task with it
                self.task.get_loop().call_soon_threadsafe(self.task.cancel)

    def event(self) -> threading.Event:
        """Set when the attempt must stop. Created on demand: most jobs never use it."""
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


class HeldAttempts:
    """The attempts whose fence this worker holds; thread-safe."""

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
        """Record the outcome; False if the attempt already has one or is gone."""
        with self._lock:
            if attempt.phase is not Phase.RUNNING:
                return False
            attempt.writing = writing
            attempt.phase = Phase.ENDED
            return True

    def remove(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Remove attempts, and return those that were still present."""
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
        """No more attempts will be added."""
        self._closed = True
        self._changed()

    @property
    def drained(self) -> bool:
        return self._closed and not self._attempts

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()
