"""Suspends this machine's graph servers when everything stops, so that they can be resumed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.client import AsyncClient
from penstock.client.errors import ClientError
from penstock.kit import logging
from penstock.launchers.subprocess import of_home

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.client._async.instances import AsyncGraph

log = logging.get(__name__)
SECONDS = 30.0
_AT_ONCE = 8


async def suspend_all(url: str, token: str) -> int:
    """Whatever runs, algorithms included; how many there were. A control plane that is away cannot
    be asked."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def suspend(graph: AsyncGraph) -> bool:
        async with turns:
            try:
                await graph.suspend(force=True)
            except ClientError:
                return False
            return True

    done = 0
    try:
        async with asyncio.timeout(SECONDS), AsyncClient(url, token, timeout=SECONDS) as ps:
            while running := [graph async for graph in ps.instances.list(status="running")]:
                done += (slept := sum(await asyncio.gather(*map(suspend, running))))
                if not slept:
                    break
    except (ClientError, TimeoutError):
        log.warning("instances_not_suspended", hint="Their graph servers are ended all the same.")
    return done


async def end_all(home: Path) -> int:
    """Every graph server that is left: one that was starting is started anew by the next `up`."""
    launcher = of_home(home)
    runs = await launcher.list()
    for run in runs:
        await launcher.stop(run.handle, grace=2.0)
        await launcher.remove(run.handle)
    return len(runs)
