"""The word to whoever waits for a run: a signed POST to an address that was looked at, again until
it is taken.

The URL is checked as it was when the run was asked for, and the address once more where the
connection is opened, by the control plane's policy; a redirect is not followed. The run is over
whatever becomes of this.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2

from penstock.guard.url import PORTS, resolve_public
from penstock.jobs.handler import Answer, Result
from penstock.kit.errors import Unavailable
from penstock.kit.outbound import Outbound, OutboundPolicy
from penstock.kit.outbound_http import checked_client, fetch

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.jobs.handler import Job, JobContext
    from penstock.reconcile.control_plane import ReconcileControlPlane

ANSWER_SECONDS = 10.0
_MAX_ANSWER = 64 * 1024


class RunCaller:
    """The handler of `run_callback`."""

    def __init__(
        self, planes: Callable[[], ReconcileControlPlane], *, seconds: float = ANSWER_SECONDS
    ) -> None:
        self._planes = planes
        self._seconds = seconds

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        async with self._planes() as plane:
            told = await plane.run_callback(job.payload["run_id"])
        policy = OutboundPolicy.from_wire(told["outbound"])
        ports = None if policy.private or policy.allow else PORTS
        await asyncio.to_thread(lambda: resolve_public(told["url"], policy=policy, ports=ports))
        url = httpx2.URL(told["url"])
        status = await self._post(Outbound(policy), url, told["body"].encode(), told["signature"])
        if not 200 <= status < 300:
            raise Unavailable(f"{url.host} answered {status} to the callback.")
        ctx.log.info("run_called_back", run_id=job.payload["run_id"], status=status)
        return Result({"status": status})

    async def _post(self, outbound: Outbound, url: httpx2.URL, body: bytes, signature: str) -> int:
        headers = {
            "Content-Type": "application/json",
            "X-Penstock-Signature": f"sha256={signature}",
        }
        try:
            async with checked_client(outbound, timeout=self._seconds) as client:
                request = client.build_request("POST", url, content=body, headers=headers)
                answer = await fetch(client, request, max_bytes=_MAX_ANSWER, seconds=self._seconds)
        except (httpx2.TransportError, httpx2.DecodingError) as e:
            raise Unavailable(
                f"{url.host} did not take the callback ({type(e).__name__})."
            ) from None
        return answer.status_code


class RunStarter:
    """The handler of `run_start`: what a schedule asks for."""

    def __init__(self, planes: Callable[[], ReconcileControlPlane]) -> None:
        self._planes = planes

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        async with self._planes() as plane:
            run_id = await plane.start_run(
                ctx.fence, job.payload["recipe_id"], job.payload.get("parameters", {})
            )
        ctx.log.info("run_started_by_schedule", run_id=run_id, recipe_id=job.payload["recipe_id"])
        return Result({"run_id": run_id})
