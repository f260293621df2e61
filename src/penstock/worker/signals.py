"""Runs a worker as a process: signals, the exit code, and an exit that nothing can block.

The main thread only waits for signals, and the handlers' event loop runs in another thread: Python
runs signal handlers only in the main thread, which must not be blocked in a driver. If the event
loop does not end after the shutdown handler, the process exits without it.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.worker.child_calls import threads_left

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from penstock.worker.runtime import Worker

    LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]

log = logging.get(__name__)
HURRIED_SECONDS = 0.2
PATIENT_SECONDS = 5.0
"""How long the handlers' thread may take to end after all is written; short after a signal, as the
supervisor counts the seconds."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Process:
    """Call `run` in the main thread."""

    def __init__(self, worker: Worker, *, loop_factory: LoopFactory | None = None) -> None:
        self._worker = worker
        self._loop_factory = loop_factory
        self._events: SimpleQueue[signal.Signals | None] = SimpleQueue()
        self._failed = False
        run = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=run, args=(self._run_worker,), name="penstock-handlers", daemon=True
        )

    def run(self) -> int:
        """Run the worker and return the exit code: 0 if nothing was lost or given up, and, with
        `once`, the job succeeded."""
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        self._worker.over.add_done_callback(lambda _: self._events.put(None))
        self._thread.start()
        received = 0
        while (event := self._events.get()) is not None:
            received += 1
            log.info("signal_received", signal=event.name, times=received)
            self._worker.stop(grace=None if received == 1 else 0.0)
        self._thread.join(HURRIED_SECONDS if received else PATIENT_SECONDS)
        code = self._code()
        log.info(
            "worker_left",
            worker=self._worker.name,
            exit_code=code,
            given_up=self._worker.summary().given_up,
        )
        if self._thread.is_alive() or threads_left():
            _exit_now(code)
        return code

    def _run_worker(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._loop_factory) as runner:
                runner.run(self._worker.run())
        except PenstockError as e:
            self._failed = True
            log.error("worker_failed", code=e.code, message=e.message, hint=e.hint)  # noqa: TRY400 - it says enough
        except Exception:
            self._failed = True
            log.exception("worker_failed")
        finally:
            self._events.put(None)

    def _code(self) -> int:
        summary = self._worker.summary()
        broken = self._failed or self._worker.failure is not None
        in_vain = self._worker.once is not None and summary.failed
        return 1 if broken or in_vain or summary.lost or summary.given_up else 0

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._events.put(signal.Signals(number))


def _exit_now(code: int) -> None:
    """Exit without waiting for stuck threads, and without finalizing the interpreter under them."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
