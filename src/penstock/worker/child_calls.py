"""Runs blocking work outside the event loop: in a thread or in a child process.

A thread cannot be killed: when its job is stopped it is left behind (it is a daemon) and should
watch `ctx.cancelled`. Each call uses a new thread, because abandoned threads would fill up a pool.
A child process can be killed with its descendants: it leads its own session. It is started from the
event loop's thread, because the kernel sends the parent-death signal when the *thread* that forked
ends.
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
            _resolve(loop, _fail, answer, e)
        else:
            _resolve(loop, _succeed, answer, value)

    threading.Thread(target=run, name=THREAD_PREFIX + name, daemon=True).start()
    return await answer


def threads_left() -> bool:
    return any(thread.name.startswith(THREAD_PREFIX) for thread in threading.enumerate())


def _resolve(loop: asyncio.AbstractEventLoop, call: Callable[[*Ts], None], *args: *Ts) -> None:
    with suppress(RuntimeError):  # the loop is closed
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
    """A child process that runs one function. Only `answer` reaps it, so its pid cannot be reused
    before."""

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
        """Block until the child has answered or died, and reap it."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("the child has pipes")
        with suppress(BrokenPipeError), self._process.stdin as orders:
            orders.write(self._order)
        with self._process.stdout as answers:
            output = answers.read()
        self._reap()
        if not output:
            raise ChildDied(
                f"The child process ended without an answer (exit code {self._process.returncode})."
            )
        succeeded, value = pickle.loads(output)  # noqa: S301 - our own child wrote it
        if not succeeded:
            raise value
        return value

    def kill(self) -> None:
        """From any thread, repeatedly: kill the child and its descendants. Never blocks."""
        if not self._lock.acquire(blocking=False):
            return  # another thread is killing or reaping it
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
