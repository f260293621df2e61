"""The word to whoever waits for a run: a signed POST to an address that was looked at, again until it is taken.

The address is resolved here and only that address is connected to, so a name that changes its mind leads nowhere; a
redirect is not followed. The run is over whatever becomes of this.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2

from penstock.guard.reach import PRIVATE
from penstock.guard.url import resolve_public
from penstock.kit.errors import Unavailable
from penstock.worker.handlers import Answer, Result

if TYPE_CHECKING:
    from penstock.guard.url import Pinned
    from penstock.worker.context import JobContext
    from penstock.worker.handlers import Job
    from penstock.worker.plane import PlaneFactory

ANSWER_SECONDS = 10.0


class RunCaller:
    """The handler of `run_callback`."""

    def __init__(self, planes: PlaneFactory, *, private: bool, seconds: float = ANSWER_SECONDS) -> None:
        self._planes = planes
        self._private = private
        self._seconds = seconds

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        async with self._planes() as plane:
            told = await plane.run_callback(job.payload["run_id"])
        allow, ports = (PRIVATE, None) if self._private else ((), (80, 443, 8080, 8443))
        pinned = await asyncio.to_thread(lambda: resolve_public(told["url"], allow=allow, ports=ports))
        status = await self._post(pinned, told["body"].encode(), told["signature"])
        if not 200 <= status < 300:
            raise Unavailable(f"{pinned.host} answered {status} to the callback.")
        ctx.log.info("run_called_back", run_id=job.payload["run_id"], status=status)
        return Result({"status": status})

    async def _post(self, pinned: Pinned, body: bytes, signature: str) -> int:
        address = str(pinned.addresses[0])
        at = f"[{address}]" if ":" in address else address
        url = httpx2.URL(pinned.url).copy_with(host=at, port=pinned.port)
        headers = {
            "Host": httpx2.URL(pinned.url).netloc.decode(),
            "Content-Type": "application/json",
            "X-Penstock-Signature": f"sha256={signature}",
        }
        try:
            async with httpx2.AsyncClient(timeout=self._seconds, trust_env=False, follow_redirects=False) as client:
                answer = await asyncio.wait_for(
                    client.post(url, content=body, headers=headers, extensions={"sni_hostname": pinned.host}),
                    self._seconds,
                )
        except (httpx2.TransportError, TimeoutError) as e:
            raise Unavailable(f"{pinned.host} did not take the callback ({type(e).__name__}).") from None
        return answer.status_code


class RunStarter:
    """The handler of `run_start`: what a schedule asks for."""

    def __init__(self, planes: PlaneFactory) -> None:
        self._planes = planes

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        async with self._planes() as plane:
            run_id = await plane.start_run(ctx.fence, job.payload["recipe_id"], job.payload.get("parameters", {}))
        ctx.log.info("run_started_by_schedule", run_id=run_id, recipe_id=job.payload["recipe_id"])
        return Result({"run_id": run_id})
