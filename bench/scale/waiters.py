"""5,000 workers that wait: what they cost the control plane and PostgreSQL while nothing happens.

The goal is for their long polls, which stand for the heartbeats of idle workers. With the
heartbeats that busy workers send every 15 seconds is for information.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rich.console import Console

from bench import cpu
from bench.figures import Figure, figure
from bench.load.places import postgres
from penstock.cli.home import Home
from penstock.cli.stack import Stack

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator
    from pathlib import Path

WAITERS = 5000
SECONDS = 105.0
"""More than two polls of each."""
SETTLE_SECONDS = 3.0
SPARE_FILES = 1000
say = Console(stderr=True, highlight=False, soft_wrap=True).print


async def figures(folder: Path, *, part: float = 1.0) -> dict[str, Figure]:
    waiters = max(50, int(WAITERS * part))
    seconds = max(5.0, SECONDS * part)
    _allow_files(2 * waiters + SPARE_FILES)
    polling = await _phase(folder / "polls", waiters, seconds)
    beating = await _phase(folder / "beats", waiters, seconds, "beating")
    name = f"{waiters}_waiters"
    return {
        f"{name}_plane_cpu": figure(polling["plane"], "% of a core", "< 5"),
        f"{name}_postgres_cpu": figure(polling["postgres"], "% of a core", "< 5"),
        f"{name}_plane_memory": figure(polling["memory"], "MB"),
        f"{name}_plane_memory_each": figure(polling["memory_each"], "kB"),
        f"{name}_polls_per_second": figure(polling["answers"], "answers/s"),
        f"{name}_lost_or_refused": figure(
            polling["failures"] + beating["failures"], "connections", "<= 0"
        ),
        f"{name}_with_heartbeats_plane_cpu": figure(beating["plane"], "% of a core"),
        f"{name}_with_heartbeats_postgres_cpu": figure(beating["postgres"], "% of a core"),
    }


async def _phase(folder: Path, waiters: int, seconds: float, *words: str) -> dict[str, float]:
    async with Stack(Home(folder), port=0, workers=0) as stack:
        plane, server = stack.members["control-plane"].pid, postgres(stack)
        empty = cpu.resident_mb(plane)
        async with _waiting(stack, waiters, *words) as process:
            await asyncio.sleep(SETTLE_SECONDS)
            before, started = (cpu.of_tree(plane), cpu.of_tree(server)), time.perf_counter()
            await asyncio.sleep(seconds)
            took = time.perf_counter() - started
            after = (cpu.of_tree(plane), cpu.of_tree(server))
            memory = cpu.resident_mb(plane)
            output, _ = await process.communicate(b"")
    counted = json.loads(output.splitlines()[-1])
    if counted["refusal"]:
        say("refused:", counted["refusal"])
    spent = {
        "plane": (after[0] - before[0]) / took * 100,
        "postgres": (after[1] - before[1]) / took * 100,
        "memory": memory,
        "memory_each": (memory - empty) / waiters * 1024,
        "answers": counted["answers"] / (took + SETTLE_SECONDS),
        "failures": float(counted["lost"] + counted["refusals"]),
    }
    say(waiters, "waiters", *words, {name: round(value, 2) for name, value in spent.items()})
    return spent


@asynccontextmanager
async def _waiting(stack: Stack, waiters: int, *words: str) -> AsyncIterator[Process]:
    """All of them have asked when the block begins."""
    address = urlsplit(stack.url)
    arguments = [
        str(address.hostname),
        str(address.port),
        stack.home.secret("service_token"),
        str(waiters),
        *words,
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.scale.waiting",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if line.strip() != b"waiting":
            raise RuntimeError(f"the waiters did not come to wait: {line!r}")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _allow_files(files: int) -> None:
    """For this process and those that it starts from now on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= files:
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, max(files, hard)))
