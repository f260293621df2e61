"""Blocking work, away from the event loop: in a thread or in a child process.

A thread cannot be killed: when its job is stopped it is left behind (it is a daemon) and ought to
watch `ctx.cancelled`. Each call has a thread of its own, for a pool would fill up with such
leftovers. A child process can be killed, with all that it started: it leads a session of its own.
It is started from the event loop's thread, for the kernel sends the parent's death signal when the
*thread* that forked ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_PROGRAM = Path(__file__).with_name("child.py")
THREAD_PREFIX = "penstock-job-"


class ChildDied(Exception):
    """A child process ended without an answer."""


async def in_thread(name: str, work: Callable[[*Ts], T], *args: *Ts) -> T:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            value = context.run(work, *args)
        except BaseException as e:  # it is raised again where the handler waits
            _tell(loop, _fail, answer, e)
        else:
            _tell(loop, _succeed, answer, value)

    threading.Thread(target=run, name=THREAD_PREFIX + name, daemon=True).start()
    return await answer


def threads_left() -> bool:
    return any(thread.name.startswith(THREAD_PREFIX) for thread in threading.enumerate())


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[[*Ts], None], *args: *Ts) -> None:
    with suppress(RuntimeError):  # the loop is closed, nobody waits any more
        loop.call_soon_threadsafe(call, *args)


def _succeed(answer: asyncio.Future[T], value: T) -> None:
    if not answer.done():
        answer.set_result(value)


def _fail(answer: asyncio.Future[T], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(
            RuntimeError("StopIteration") if isinstance(error, StopIteration) else error
        )


class Child:
    """One child process with one function to run. Nobody but `answer` reaps it, so its pid stays
    ours until then."""

    def __init__(
        self, prepare: Callable[[], None] | None, work: Callable[[*Ts], T], args: tuple[*Ts]
    ) -> None:
        self._order = pickle.dumps(sys.path) + pickle.dumps((prepare, work, args))
        self._lock = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-P", str(_PROGRAM), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def answer(self) -> object:
        """Blocks until the child has answered or died, and reaps it."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("the child has pipes")
        with suppress(BrokenPipeError), self._process.stdin as orders:
            orders.write(self._order)
        with self._process.stdout as answers:
            said = answers.read()
        self._reap()
        if not said:
            raise ChildDied(
                f"The child process ended without an answer (exit code {self._process.returncode})."
            )
        succeeded, value = pickle.loads(said)  # noqa: S301 - our own child wrote it
        if not succeeded:
            raise value
        return value

    def kill(self) -> None:
        """From any thread, any number of times: the child and what it started are gone at once. It
        never blocks."""
        if not self._lock.acquire(blocking=False):
            return  # somebody else is at it
        try:
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
        finally:
            self._lock.release()

    def _reap(self) -> None:
        with self._lock:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
