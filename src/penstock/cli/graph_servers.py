"""Suspends this machine's graph servers when everything stops, so that they can be resumed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2

from penstock.kit import logging
from penstock.launchers.subprocess import of_home

if TYPE_CHECKING:
    from pathlib import Path

log = logging.get(__name__)
SECONDS = 30.0
_AT_ONCE = 8


async def suspend_all(url: str, token: str) -> int:
    """Whatever runs, algorithms included; how many there were. A control plane that is away cannot
    be asked."""
    headers = {"Authorization": f"Bearer {token}"}
    turns = asyncio.Semaphore(_AT_ONCE)
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=SECONDS, trust_env=False
    ) as http:

        async def suspend(instance_id: int) -> bool:
            async with turns:
                answer = await http.post(
                    f"/api/instances/{instance_id}/suspend", json={"force": True}
                )
                return answer.is_success

        done = 0
        try:
            async with asyncio.timeout(SECONDS):
                while running := await _running(http):
                    done += (slept := sum(await asyncio.gather(*map(suspend, running))))
                    if not slept:
                        break
        except (httpx2.TransportError, TimeoutError):
            log.warning(
                "instances_not_suspended", hint="Their graph servers are ended all the same."
            )
        return done


async def _running(http: httpx2.AsyncClient) -> list[int]:
    answer = await http.get("/api/instances", params={"status": "running", "limit": 100})
    return [instance["id"] for instance in answer.json()["data"]] if answer.is_success else []


async def end_all(home: Path) -> int:
    """Every graph server that is left: one that was starting is started anew by the next `up`."""
    launcher = of_home(home)
    runs = await launcher.list()
    for run in runs:
        await launcher.stop(run.handle, grace=2.0)
        await launcher.remove(run.handle)
    return len(runs)
