"""`python -m tests.storage.flow OPTIONS ROWS` sinks that many rows to S3 and prints its peak memory
in MB."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from penstock.storage.object_store import StoreOptions, open_store
from penstock.storage.parquet_sink import write_parquet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BATCH = 50_000
SCHEMA = pa.schema([("id", pa.int64()), ("ref", pa.string()), ("x", pa.float64())])


async def batches(rows: int) -> AsyncIterator[pa.RecordBatch]:
    for _ in range(rows // BATCH):
        numbers = pa.Array.from_buffers(
            pa.int64(), BATCH, [None, pa.py_buffer(os.urandom(8 * BATCH))]
        )
        small = pc.bit_wise_and(numbers, 0xFFFFFFF)
        yield pa.RecordBatch.from_arrays(
            [numbers, numbers.cast(pa.string()), small.cast(pa.float64())], schema=SCHEMA
        )


async def main(options: StoreOptions, rows: int) -> None:
    store = open_store(f"s3://penstock/flow-{uuid4().hex}", options=options)
    written = await write_parquet(store, "t/", SCHEMA, batches(rows), attempt="a")
    assert written.rows == rows


if __name__ == "__main__":
    asyncio.run(main(StoreOptions(**json.loads(sys.argv[1])), int(sys.argv[2])))
    # The high-water mark of this process alone; getrusage would count the parent it was forked
    # from.
    status = Path("/proc/self/status").read_text()
    print(int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) // 1024)  # noqa: T201
