"""What handlers ask of the control plane beside the kernel's verbs.

A control plane that is away is waited for: a job that has just begun would otherwise use up an attempt for it.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from penstock.jobs import wire
from penstock.jobs.http import HttpJobStore
from penstock.kit.errors import InvalidInput, StaleAttempt, Unavailable
from penstock.kit.outbound import OutboundPolicy
from penstock.sources.opening import Opening
from penstock.worker.attempt import Stop, Stopped
from penstock.worker.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from penstock.jobs.model import Fence, JobId, JobView
    from penstock.kit.config import Settings

    PlaneFactory: TypeAlias = Callable[[], "Plane"]

T = TypeVar("T")
PATIENCE_SECONDS = 300.0
AT_ONCE = 8


class Plane(HttpJobStore):
    """`async with factory() as plane:`, for as long as a handler has questions."""

    async def __aenter__(self) -> Plane:
        return self

    async def opening(self, fence: Fence, side: str | None = None) -> Opening:
        """What opens the source of a job that we hold; a job that we do not hold any more is given up."""
        body = {"attempt_id": fence.attempt_id} | ({} if side is None else {"side": side})
        try:
            found = await _patiently("source", lambda: self._post(f"{fence.job_id}/source", body))
        except StaleAttempt:
            raise Stopped(Stop.LOST) from None
        return Opening(
            type=found["type"],
            config=found["config"],
            secrets=found["secrets"],
            outbound=OutboundPolicy.from_wire(found["outbound"]),
        )

    async def jobs(self, job_ids: Sequence[JobId]) -> list[JobView]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(job_id: JobId) -> JobView:
            async with room:
                return await _patiently("job", lambda: self.job(job_id))

        return await asyncio.gather(*(one(job_id) for job_id in job_ids))

    async def catalog(self, fence: Fence) -> dict[str, Any]:
        """What opens the catalog of a maintenance job that we hold."""
        return await self._held(fence, "catalog")

    async def hold(self, fence: Fence) -> None:
        """StaleAttempt when the job is not ours any more."""
        await self._held(fence, "hold")

    async def pointer(self, fence: Fence) -> str:
        return str((await self._held(fence, "pointer"))["metadata_location"])

    async def swap(self, fence: Fence, old: str, new: str) -> bool:
        """Said twice it is done once, so it is said until somebody answers."""
        return bool((await self._held(fence, "swap", old=old, new=new))["moved"])

    async def other_tables(self, fence: Fence) -> list[dict[str, Any]]:
        """The tables that may share the storage of a job's table."""
        tables: list[dict[str, Any]] = (await self._held(fence, "neighbours"))["tables"]
        return tables

    async def action_ended(self, fence: Fence, outcome: dict[str, Any]) -> None:
        await self._held(fence, "actions", outcome=outcome)

    async def ended_actions(self, fence: Fence) -> list[dict[str, Any]]:
        """How actions of this job ended that earlier attempts had come to the end of."""
        outcomes: list[dict[str, Any]] = (await self._held(fence, "ended-actions"))["outcomes"]
        return outcomes

    async def _held(self, fence: Fence, what: str, **more: Any) -> dict[str, Any]:
        body = {"attempt_id": fence.attempt_id, **more}
        address = f"{self._url}/api/internal/maintenance/{fence.job_id}/{what}"
        found: dict[str, Any] = await _patiently(what, lambda: self._call("POST", address, content=wire.encode(body)))
        return found

    async def start_run(self, fence: Fence, recipe_id: str, parameters: dict[str, Any]) -> int:
        """Asks for the run that a scheduled job is about; asked twice it is the same run."""
        body = {**wire.dump_fence(fence), "recipe_id": recipe_id, "parameters": parameters}
        address = f"{self._url}/api/internal/runs/start"
        found = await _patiently("start", lambda: self._call("POST", address, content=wire.encode(body)))
        return int(found["run_id"])

    async def run_callback(self, run_id: int) -> dict[str, Any]:
        """Where a run's end is told, with what, how it is signed, and where it may lead."""
        address = f"{self._url}/api/internal/runs/{run_id}/callback"
        found: dict[str, Any] = await _patiently("callback", lambda: self._call("GET", address))
        return found

    async def live_attempts(self) -> list[str]:
        """The attempts whose files may still become part of a result."""
        address = f"{self._url}/api/internal/export-jobs/attempts"
        found = await _patiently("attempts", lambda: self._call("GET", address))
        return [str(attempt) for attempt in found["attempts"]]


def plane_factory(settings: Settings) -> PlaneFactory:
    if settings.service_token is None:
        raise InvalidInput("A worker needs the service token of its control plane.", hint="Set PENSTOCK_SERVICE_TOKEN.")
    url = settings.url or f"{settings.scheme}://{settings.host}:{settings.port}"
    token = settings.service_token.get_secret_value()
    return lambda: Plane(url, token, component="worker")


async def _patiently(what: str, call: Callable[[], Awaitable[T]]) -> T:
    patience = Patience(random.Random())  # noqa: S311 - it spreads pauses
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await call()
        except Unavailable as e:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(patience.failed(what, e))
