"""Jobs of the kernel: everything long is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._async.listing import listed
from penstock.client._async.waiting import until_settled
from penstock.client.errors import Failed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.client._async.transport import AsyncTransport

OPEN = ("queued", "running", "parked", "scheduled")


class AsyncJob:
    """A job as it was when it was asked for; `refresh` asks again."""

    def __init__(self, transport: AsyncTransport, data: dict[str, Any]) -> None:
        self._transport = transport
        self.data: dict[str, Any] = data

    @property
    def id(self) -> int:
        number: int = self.data["id"]
        return number

    @property
    def status(self) -> str:
        word: str = self.data["status"]
        return word

    @property
    def result(self) -> Any:
        return self.data.get("result")

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.data.get('kind', '')} {self.status}>"

    async def refresh(self) -> AsyncJob:
        self.data = (await self._transport.call("GET", "/api/jobs/{job_id}", path={"job_id": self.id}))["data"]
        return self

    async def how_far(self) -> tuple[float, str]:
        return float((self.data.get("progress") or {}).get("percent") or 0.0), self.status

    async def wait(self, timeout: float | None = None, *, progress: bool = True) -> AsyncJob:
        """Until it is over; Failed, with the error that it ended with, when it did not succeed."""
        await until_settled(self, f"Job {self.id}", OPEN, timeout=timeout, show=progress)
        if self.status != "succeeded":
            error = self.data.get("error") or {}
            message = f"Job {self.id} is {self.status}: {error.get('message') or 'no reason was given'}"
            raise Failed(message, code=str(error.get("code") or "JOB_FAILED"), status=200)
        return self

    async def cancel(self, reason: str = "") -> AsyncJob:
        path = {"job_id": self.id}
        await self._transport.call("POST", "/api/jobs/{job_id}/cancel", path=path, json={"reason": reason})
        return await self.refresh()

    async def retry(self) -> AsyncJob:
        """The same again, as a new job."""
        answer = await self._transport.call("POST", "/api/jobs/{job_id}/retry", path={"job_id": self.id})
        return await AsyncJob(self._transport, answer["data"]).refresh()

    async def actions(self) -> list[dict[str, Any]]:
        """What a maintenance job did, action by action."""
        answer = await self._transport.call("GET", "/api/jobs/{job_id}/actions", path={"job_id": self.id})
        found: list[dict[str, Any]] = answer["data"]
        return found


class AsyncJobs:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, kind: str, payload: Any = None, **options: Any) -> AsyncJob:
        body = {"kind": kind, "payload": payload} | options
        answer = await self._transport.call("POST", "/api/jobs", json=body)
        return await AsyncJob(self._transport, answer["data"]).refresh()

    async def get(self, job_id: int) -> AsyncJob:
        answer = await self._transport.call("GET", "/api/jobs/{job_id}", path={"job_id": job_id})
        return AsyncJob(self._transport, answer["data"])

    async def list(self, **filters: Any) -> AsyncIterator[AsyncJob]:
        async for item in listed(self._transport, "/api/jobs", **filters):
            yield AsyncJob(self._transport, item)
