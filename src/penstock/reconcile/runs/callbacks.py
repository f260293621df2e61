"""Handlers of `run_callback`, the signed webhook sent when a run ends, and of `run_start`.

The webhook is retried until it is accepted; it does not change the run. Its URL was checked when
the run was created; the address is checked again when the connection is opened, by the control
plane's outbound policy. Redirects are not followed.
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
    """Handler of `run_callback`."""

    def __init__(
        self, connect: Callable[[], ReconcileControlPlane], *, seconds: float = ANSWER_SECONDS
    ) -> None:
        self._connect = connect
        self._seconds = seconds

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        async with self._connect() as control_plane:
            callback = await control_plane.run_callback(job.payload["run_id"])
        policy = OutboundPolicy.from_wire(callback["outbound"])
        ports = None if policy.private or policy.allow else PORTS
        await asyncio.to_thread(lambda: resolve_public(callback["url"], policy=policy, ports=ports))
        url = httpx2.URL(callback["url"])
        status = await self._post(
            Outbound(policy), url, callback["body"].encode(), callback["signature"]
        )
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
            raise Unavailable(f"The callback to {url.host} failed ({type(e).__name__}).") from None
        return answer.status_code


class RunStarter:
    """Handler of `run_start`, the job of a schedule."""

    def __init__(self, connect: Callable[[], ReconcileControlPlane]) -> None:
        self._connect = connect

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        async with self._connect() as control_plane:
            run_id = await control_plane.start_run(
                ctx.fence, job.payload["recipe_id"], job.payload.get("parameters", {})
            )
        ctx.log.info("run_started_by_schedule", run_id=run_id, recipe_id=job.payload["recipe_id"])
        return Result({"run_id": run_id})
