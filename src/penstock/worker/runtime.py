"""The worker: claims jobs, runs their handlers concurrently in one event loop, and reports them.

`run()` is the whole life of a worker, in the caller's event loop. Three parts share the table of
held attempts: the claimer and the task runner in this loop, and the background thread with
heartbeats, progress, health and the shutdown handler.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import penstock
from penstock.jobs.model import Registration
from penstock.kit import logging
from penstock.kit.errors import Internal, InvalidInput
from penstock.kit.ids import check_name
from penstock.worker.attempt import HeldAttempts
from penstock.worker.background_thread import BackgroundThread
from penstock.worker.claiming import POLL_SECONDS, Claimer
from penstock.worker.context import WorkerHooks
from penstock.worker.deadlines import Deadlines
from penstock.worker.delivery import Delivery
from penstock.worker.health import METRICS_TYPE, HealthServer, Page, document
from penstock.worker.heartbeat import Heartbeat
from penstock.worker.metrics import WorkerMetrics
from penstock.worker.progress import Progress
from penstock.worker.result_buffer import ResultBuffer
from penstock.worker.shutdown import ShutdownHandler
from penstock.worker.task_runner import TaskRunner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractAsyncContextManager

    from penstock.jobs.contract import JobStore
    from penstock.jobs.handler import Handlers
    from penstock.jobs.kinds import Kinds
    from penstock.jobs.model import Claimed

    StoreFactory: TypeAlias = Callable[[], AbstractAsyncContextManager[JobStore]]

log = logging.get(__name__)
MAX_SLOTS = 1000
DISMISS_SECONDS = 0.1
SILENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a worker did: attempts by status, and how many outcomes it could not write.

    `given_up` attempts were interrupted, and released or failed, because the worker stopped.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0
    given_up: int = 0

    @property
    def failed(self) -> bool:
        return any(self.counts.get(status) for status in ("failed", "retrying", "stale"))


class Worker:
    def __init__(
        self,
        open_store: StoreFactory,
        handlers: Handlers,
        kinds: Kinds,
        *,
        name: str,
        queues: Sequence[str],
        slots: int = 50,
        grace_seconds: float = 20.0,
        once: float | None = None,
        poll_seconds: float = POLL_SECONDS,
        health: tuple[str, int] | None = None,
        max_result_bytes: int = 1024 * 1024,
        prepare_child: Callable[[], None] | None = None,
        rng: random.Random | None = None,
        metrics: WorkerMetrics | None = None,
    ) -> None:
        if not queues:
            raise InvalidInput("A worker needs at least one queue.")
        if not 1 <= slots <= MAX_SLOTS:
            raise InvalidInput(f"A worker must have 1 to {MAX_SLOTS} slots, not {slots}.")
        self.name = check_name(name, "Worker")
        self._queues = [check_name(queue, "Queue") for queue in queues]
        self._open_store = open_store
        self._slots = 1 if once is not None else slots
        self._grace = grace_seconds
        self.once = once
        self._poll_seconds = poll_seconds
        self._rng = rng or random.Random()  # noqa: S311 - it spreads pauses
        self.metrics = metrics or WorkerMetrics()
        self._attempts = HeldAttempts()
        self._results = ResultBuffer()
        self._delivery = Delivery(self._attempts, self.metrics)
        self._progress = Progress()
        self._registration = Registration(
            worker=name,
            session=uuid4(),
            queues=self._queues,
            slots=self._slots,
            version=penstock.__version__,
        )
        self._heartbeat = Heartbeat(
            self._attempts,
            self.metrics,
            registration=self._registration,
            is_waiting=lambda: self._claimer is not None and self._claimer.is_waiting,
            rng=self._rng,
        )
        self._shutdown = ShutdownHandler(
            self._attempts, self._delivery, worker=name, session=self._registration.session
        )
        hooks = WorkerHooks(
            note=self._progress.note, count_rows=self.metrics.rows, prepare_child=prepare_child
        )
        self._task_runner = TaskRunner(
            handlers,
            kinds,
            self._attempts,
            self.metrics,
            self._results,
            hooks,
            max_result_bytes=max_result_bytes,
            rng=self._rng,
        )
        self._deadlines = Deadlines(self._attempts, self._task_runner.give_up)
        self.health = None if health is None else HealthServer(*health, self._pages())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self.failure: BaseException | None = None
        """The fatal error that ended the worker."""
        self._claimer: Claimer | None = None
        self.metrics.watch(self._attempts, lambda: self._heartbeat.answered_at)

    @property
    def over(self) -> Future[int]:
        """Resolves when every outcome is written or lost, to the number of lost ones."""
        return self._shutdown.done

    @property
    def superseded(self) -> bool:
        """Whether another process registered under this worker's name."""
        return self._heartbeat.superseded

    @property
    def busy(self) -> int:
        """Number of running handlers."""
        return self._task_runner.busy

    def summary(self) -> Summary:
        """The summary so far; held attempts count as lost until they are written."""
        lost = self._shutdown.done.result() if self._shutdown.done.done() else len(self._attempts)
        return Summary(
            counts=dict(self.metrics.tally),
            lost=lost,
            given_up=self._delivery.given_up,
        )

    def stop(self, grace: float | None = None) -> None:
        """From any thread: stop claiming, let short jobs finish, release the rest. A second call
        with 0 releases them now."""
        self._stopping = True
        log.info(
            "worker_stops",
            held=len(self._attempts),
            grace_seconds=self._grace if grace is None else grace,
        )
        if self._loop is not None and self._claimer is not None:
            with suppress(RuntimeError):  # the loop is closed, and all is over
                self._loop.call_soon_threadsafe(self._claimer.close)
        self._shutdown.ask(self._grace if grace is None else grace)

    async def run(self) -> Summary:
        """Run until stopped; raises a fatal error."""
        self._loop = asyncio.get_running_loop()
        async with self._open_store() as store:
            background = BackgroundThread(
                self._side_store, [self._heartbeat.run, self._progress.run, self._shutdown.run]
            )
            background.start()
            try:
                await _resolved(background.ready, background.ended)
                background.ready.result(timeout=0)
                await self._work(store, background)
            finally:
                background.close()
                await _resolved(background.ended)
        return self.summary()

    async def _work(self, store: JobStore, background: BackgroundThread) -> None:
        self._claimer = claimer = Claimer(
            store,
            self._delivery,
            self._results,
            registration=self._registration,
            registered=self._heartbeat.begin,
            room=lambda: self._slots - self._task_runner.busy,
            take=self._take,
            answered=self._heartbeat.heard,
            doubted=self._heartbeat.within,
            rng=self._rng,
            once=self.once,
            poll_seconds=self._poll_seconds,
        )
        log.info("worker_started", worker=self.name, queues=self._queues, slots=self._slots)
        if self._stopping:
            claimer.close()
        claiming = asyncio.create_task(claimer.run(), name="claimer")
        closing = asyncio.create_task(self._when_closed(claimer), name="closing")
        try:
            await _resolved(self._shutdown.done, background.ended, claiming)
            if claiming.done():
                self.failure = claiming.exception()
        finally:
            self._shutdown.ask(0)
            await _resolved(self._shutdown.done, background.ended)
            self._deadlines.close()
            closing.cancel()
            claiming.cancel()
            await asyncio.wait({claiming, closing})
            await self._task_runner.dismiss(DISMISS_SECONDS)
        if self.failure is not None:
            raise self.failure
        if not self._shutdown.done.done():
            raise Internal("The worker's background thread died; its leases will expire.")

    async def _when_closed(self, claimer: Claimer) -> None:
        await claimer.closed.wait()
        self._attempts.close()
        self._shutdown.ask(float("inf"))

    def _take(self, claimed: Sequence[Claimed]) -> None:
        if self._stopping:
            self._task_runner.send_back(claimed)
            return
        attempts = self._task_runner.start(claimed)
        self._deadlines.expect(min(a.deadline for a in attempts))
        self._heartbeat.within(min(a.policy.heartbeat for a in attempts))

    @asynccontextmanager
    async def _side_store(self) -> AsyncIterator[JobStore]:
        async with self._open_store() as store:
            if self.health is None:
                yield store
            else:
                async with self.health:
                    yield store

    def _pages(self) -> Mapping[str, Callable[[], Page]]:
        return {
            "/health": self._health_page,
            "/ready": self._ready_page,
            "/metrics": self._metrics_page,
        }

    def _health_page(self) -> Page:
        return document({"status": "stopping" if self._stopping else "ok", **self._facts()})

    def _ready_page(self) -> Page:
        ready = (
            not self._stopping
            and self._heartbeat.answered
            and self._heartbeat.silent_for < SILENCE_SECONDS
        )
        return document({"status": "ready" if ready else "not ready", **self._facts()}, well=ready)

    def _facts(self) -> dict[str, object]:
        return {
            "worker": self.name,
            "superseded": self._heartbeat.superseded,
            "version": penstock.__version__,
            "queues": self._queues,
            "active": len(self._attempts),
            "slots": self._slots,
            "last_heartbeat_seconds_ago": round(self._heartbeat.silent_for, 3),
        }

    def _metrics_page(self) -> Page:
        return Page(status=HTTPStatus.OK, body=self.metrics.text(), content_type=METRICS_TYPE)


async def _resolved(*futures: Future[Any] | asyncio.Future[Any]) -> None:
    """Wait until the first is resolved. Unlike awaiting one, this never cancels them."""
    waited = [f if isinstance(f, asyncio.Future) else asyncio.wrap_future(f) for f in futures]
    done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    for future in done:
        future.exception()  # mark it as retrieved; callers read the future themselves
