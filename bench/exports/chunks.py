"""What a chunk plan costs the source: buffers of all chunks together, against one scan of the
table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import asyncpg

from bench.figures import Figure, figure
from penstock.sources.contract import Limits
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Sequence

CHUNKS = 10


async def cost(dsn: str, heap: str, table: str) -> dict[str, Figure]:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET max_parallel_workers_per_gather = 0")
        whole = await _buffers(connection, [f"SELECT * FROM {table}"])
        rows = await connection.fetchval(f"SELECT count(*) FROM {table}")
        size = await connection.fetchval("SELECT pg_relation_size($1::regclass)", table)
        step = -(-rows // CHUNKS)
        naive = [
            f"SELECT * FROM {table} ORDER BY id LIMIT {step} OFFSET {n * step}"
            for n in range(CHUNKS)
        ]
        planned = await _planned(dsn, table, -(-size // CHUNKS))
        ours, theirs = await _buffers(connection, planned), await _buffers(connection, naive)
    finally:
        await connection.close()
    return {
        f"chunks_{heap}": figure(ours / whole, "x one scan's buffers", "<= 1.1"),
        f"limit_offset_{heap}": figure(theirs / whole, "x one scan's buffers"),
    }


async def _planned(dsn: str, table: str, chunk_bytes: int) -> list[str]:
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    config = {"database": parts.path[1:], "user": query["user"][0], "host": query["host"][0]}
    async with open_source("postgres", config | {"port": int(query["port"][0])}, {}) as source:
        plan = await source.plan(
            f"SELECT * FROM {table}", Limits(chunk_bytes=chunk_bytes, max_chunks=CHUNKS)
        )
        if plan.hold is not None:
            await plan.hold.close()
        return [chunk.sql for chunk in plan.chunks]


async def _buffers(
    connection: asyncpg.Connection[asyncpg.Record], statements: Sequence[str]
) -> int:
    total = 0
    for sql in statements:
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}")
        plan = json.loads(text)[0]["Plan"]
        total += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return total
