"""Jobs of the kernel: everything long is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.listing import listed
from penstock.client._sync.waiting import until_settled
from penstock.client.errors import Failed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.client._sync.transport import Transport

OPEN = ("queued", "running", "parked", "scheduled")


class Job:
    """A job as it was when it was asked for; `refresh` asks again."""

    def __init__(self, transport: Transport, data: dict[str, Any]) -> None:
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

    def refresh(self) -> Job:
        self.data = (self._transport.call("GET", "/api/jobs/{job_id}", path={"job_id": self.id}))["data"]
        return self

    def how_far(self) -> tuple[float, str]:
        return float((self.data.get("progress") or {}).get("percent") or 0.0), self.status

    def wait(self, timeout: float | None = None, *, progress: bool = True) -> Job:
        """Until it is over; Failed, with the error that it ended with, when it did not succeed."""
        until_settled(self, f"Job {self.id}", OPEN, timeout=timeout, show=progress)
        if self.status != "succeeded":
            error = self.data.get("error") or {}
            message = f"Job {self.id} is {self.status}: {error.get('message') or 'no reason was given'}"
            raise Failed(message, code=str(error.get("code") or "JOB_FAILED"), status=200)
        return self

    def cancel(self, reason: str = "") -> Job:
        path = {"job_id": self.id}
        self._transport.call("POST", "/api/jobs/{job_id}/cancel", path=path, json={"reason": reason})
        return self.refresh()

    def retry(self) -> Job:
        """The same again, as a new job."""
        answer = self._transport.call("POST", "/api/jobs/{job_id}/retry", path={"job_id": self.id})
        return Job(self._transport, answer["data"]).refresh()

    def actions(self) -> list[dict[str, Any]]:
        """What a maintenance job did, action by action."""
        answer = self._transport.call("GET", "/api/jobs/{job_id}/actions", path={"job_id": self.id})
        found: list[dict[str, Any]] = answer["data"]
        return found


class Jobs:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, kind: str, payload: Any = None, **options: Any) -> Job:
        body = {"kind": kind, "payload": payload} | options
        answer = self._transport.call("POST", "/api/jobs", json=body)
        return Job(self._transport, answer["data"]).refresh()

    def get(self, job_id: int) -> Job:
        answer = self._transport.call("GET", "/api/jobs/{job_id}", path={"job_id": job_id})
        return Job(self._transport, answer["data"])

    def list(self, **filters: Any) -> Iterator[Job]:
        for item in listed(self._transport, "/api/jobs", **filters):
            yield Job(self._transport, item)
