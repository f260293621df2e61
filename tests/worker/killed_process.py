"""A worker process that dies by SIGKILL at the step it is told.

`python -m tests.worker.killed_process` imports all it needs once, then forks a process for every
JSON line on its input and answers with how that one ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from penstock.graphs.snapshots.handlers import direct_export, publish, unload
from penstock.graphs.snapshots.handlers.export import Exporter
from penstock.jobs.control_plane import ControlPlaneClient
from penstock.sources.trino.unload import TrinoUnload
from penstock.storage.parquet_sink import ParquetSink
from penstock.wiring import settings as config
from penstock.wiring.worker import run_worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

EXPORT_STEPS = (
    "a job is claimed",
    "its source is told",
    "its query is checked",
    "its first rows are read",
    "its file is about to be published",
    "its file is published",
    "its rows are counted",
    "its end is written",
    "its parts are counted again",
    "its manifest is about to be written",
    "its manifest is written",
)
UNLOAD_STEPS = (
    "its query is submitted",
    "its query was asked after",
    "its files are about to be collected",
)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    def call(*args: Any, **options: Any) -> Any:
        die()
        return real(*args, **options)

    setattr(owner, name, call)


def after(owner: Any, name: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    def call(*args: Any, **options: Any) -> Any:
        done = real(*args, **options)
        die()
        return done

    setattr(owner, name, call)


def after_waiting(owner: Any, name: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    async def call(*args: Any, **options: Any) -> Any:
        done = await real(*args, **options)
        die()
        return done

    setattr(owner, name, call)


def after_first(owner: Any, name: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    async def call(*args: Any, **options: Any) -> AsyncIterator[Any]:
        async for item in real(*args, **options):
            yield item
            die()

    setattr(owner, name, call)


def after_an_end(owner: Any, name: str) -> None:
    """The exchange that carries an end comes back, and nobody hears of it."""
    real: Callable[..., Any] = getattr(owner, name)

    async def call(self: Any, endings: Any, *args: Any, **options: Any) -> Any:
        done = await real(self, endings, *args, **options)
        if endings:
            die()
        return done

    setattr(owner, name, call)


WIRES: dict[str, tuple[Callable[[Any, str], None], Any, str]] = {
    "a job is claimed": (before, Exporter, "__call__"),
    "its source is told": (after_waiting, ControlPlaneClient, "source"),
    "its query is checked": (after_waiting, direct_export, "checked"),
    "its first rows are read": (after_first, direct_export.Reading, "batches"),
    "its file is about to be published": (before, ParquetSink, "finish"),
    "its file is published": (after, ParquetSink, "finish"),
    "its rows are counted": (after_waiting, direct_export, "verify_rows"),
    "its parts are counted again": (after_waiting, publish, "_counted"),
    "its manifest is about to be written": (before, publish, "write_manifest"),
    "its manifest is written": (after_waiting, publish, "write_manifest"),
    "its query is submitted": (after_waiting, unload.Unloading, "_begin"),
    "its query was asked after": (after_waiting, TrinoUnload, "poll"),
    "its files are about to be collected": (before, unload.Unloading, "_collect"),
}


def work(order: dict[str, Any]) -> int:
    os.environ.update(order["environment"])
    if order["step"] == "its end is written":
        from penstock.jobs.http_store import HttpJobStore

        after_an_end(HttpJobStore, "exchange")
        after_an_end(HttpJobStore, "finish")
    else:
        wire, owner, name = WIRES[order["step"]]
        wire(owner, name)
    return run_worker(config.load(), queues=["export", "publish"], name=f"victim-{os.getpid()}")


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.dup2(2, 1)
            os._exit(work(json.loads(line)))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
