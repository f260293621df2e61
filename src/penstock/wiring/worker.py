"""Builds and runs a worker from the settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.jobs.control_plane import client_factory
from penstock.jobs.http_store import HttpJobStore
from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.kit.ids import worker_name
from penstock.kit.scratch import sweep_in_background
from penstock.wiring.job_kinds import default_kinds
from penstock.worker.runtime import Worker
from penstock.worker.signals import Process

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from penstock.jobs.handler import Handlers
    from penstock.jobs.kinds import Kinds
    from penstock.wiring.settings import Settings

log = logging.get(__name__)


def run_worker(
    settings: Settings,
    *,
    handlers: Handlers | None = None,
    kinds: Kinds | None = None,
    queues: Sequence[str] | None = None,
    name: str | None = None,
    once: bool = False,
    wait: float = 5.0,
) -> int:
    """Run a worker in this process, from the main thread, and return its exit code.

    `once` runs one job, and waits at most `wait` seconds for it. Without `handlers`, it uses
    `default_handlers`.
    """
    configure = partial(
        logging.configure, level=settings.log_level, form=settings.log_form, process="worker"
    )
    configure()
    sweep_in_background()
    try:
        worker = Worker(
            client_factory(settings, HttpJobStore),
            handlers or _default_handlers(settings),
            kinds or default_kinds(),
            name=name or settings.worker_name or worker_name(),
            queues=queues or _split(settings.worker_queues),
            slots=settings.worker_slots,
            grace_seconds=settings.worker_grace_seconds,
            once=wait if once else None,
            poll_seconds=settings.worker_poll_seconds,
            health=(settings.worker_host, settings.worker_port),
            max_result_bytes=settings.max_payload_bytes,
            prepare_child=configure,
        )
    except PenstockError as e:
        log.error("worker_failed", code=e.code, message=e.message, hint=e.hint)  # noqa: TRY400 - no traceback needed
        return 1
    return Process(worker, loop_factory=_fast_loop()).run()


def _default_handlers(settings: Settings) -> Handlers:
    """Imported here: a worker with its own handlers needs no drivers, storage or parsers."""
    from penstock.wiring.default_handlers import default_handlers
    from penstock.worker.arrow_memory import choose_pool

    choose_pool()
    return default_handlers(settings)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
