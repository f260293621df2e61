"""A process that exports and commits, and dies by SIGKILL at the step it is told.

`python -m tests.storage.killed_process` imports all it needs once, then forks a process for every
JSON line on its input and answers with how that one ended. A step is the moment after a call to
obstore, or before one that publishes: between two steps nothing changes in the store, so there is
no state of the protocol in which nobody was killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import obstore
import pyarrow as pa

from penstock.storage.counts import verify_rows
from penstock.storage.manifest import Manifest, write_manifest
from penstock.storage.object_store import StoreOptions, open_store
from penstock.storage.parquet_sink import SinkLimits, write_parquet
from penstock.storage.row_groups import GroupLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PREFIX = "owner/7/v1/snapshot-1/"
SCHEMA = pa.schema([("id", pa.int64()), ("blob", pa.binary())])
LARGE, SMALL = 6, 5
_MIB = 1024 * 1024


@cache
def table() -> pa.Table:
    """Six rows that fill a multipart upload, five that fit in one request; the same bytes in every
    process."""
    random = Random(7)
    blobs = [random.randbytes(_MIB) for _ in range(LARGE)] + [b"small"] * SMALL
    return pa.table([range(LARGE + SMALL), blobs], schema=SCHEMA)


async def export(url: str, options: StoreOptions, attempt: str) -> None:
    store = open_store(url, options=options)
    limits = SinkLimits(group=GroupLimits(rows=LARGE), file_bytes=5 * _MIB)
    written = await write_parquet(
        store, PREFIX + "nodes/Person/", SCHEMA, _batches(), attempt=attempt, limits=limits
    )
    await verify_rows(store, written.parts, sent=LARGE + SMALL)
    entities = {"nodes/Person": written.entity("SELECT 1")}
    await write_manifest(store, PREFIX, Manifest(created_at=datetime.now(UTC), entities=entities))


async def _batches() -> AsyncIterator[pa.RecordBatch]:
    for batch in table().to_batches(max_chunksize=3):
        yield batch


class Tripwire:
    def __init__(self, kill_at: int, log: Path) -> None:
        self._kill_at = kill_at
        self._log = log
        self._steps: list[str] = []

    def step(self, name: str) -> None:
        self._steps.append(name)
        if len(self._steps) == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if not self._kill_at:
            self._log.write_text("\n".join(self._steps))

    def string_up(self) -> None:
        for name in ("put", "delete"):
            self._wrap(name)
        self._wrap_async("put_async")
        open_writer = obstore.open_writer
        setattr(obstore, "open_writer", lambda *a, **k: Wired(open_writer(*a, **k), self))  # noqa: B010

    def _wrap(self, name: str) -> None:
        real: Callable[..., Any] = getattr(obstore, name)

        def call(raw: object, key: str, *args: object, **options: object) -> object:
            self.step(f"before {name} {_short(key)}")
            result = real(raw, key, *args, **options)
            self.step(f"after {name} {_short(key)}")
            return result

        setattr(obstore, name, call)

    def _wrap_async(self, name: str) -> None:
        real: Callable[..., Any] = getattr(obstore, name)

        async def call(raw: object, key: str, *args: object, **options: object) -> object:
            self.step(f"before {name} {_short(key)}")
            result = await real(raw, key, *args, **options)
            self.step(f"after {name} {_short(key)}")
            return result

        setattr(obstore, name, call)


class Wired:
    """obstore's writer, with a step after a write and on each side of the end."""

    def __init__(self, real: Any, wire: Tripwire) -> None:
        self._real = real
        self._wire = wire

    def write(self, data: bytes) -> None:
        self._real.write(data)
        self._wire.step("after a write to the upload")

    def close(self) -> None:
        self._wire.step("before the upload is completed")
        self._real.close()
        self._wire.step("after the upload is completed")

    def closed(self) -> bool:
        return bool(self._real.closed())


def _short(key: str) -> str:
    return key.rsplit("/", 1)[-1]


def _die(order: dict[str, Any]) -> None:
    Tripwire(order["kill_at"], Path(order["log"])).string_up()
    options = StoreOptions(**order["options"])
    asyncio.run(export(order["url"], options, order["attempt"]))


def main() -> None:
    table()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _die(json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
