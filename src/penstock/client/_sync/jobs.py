"""Jobs, and the schedules that create them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.listing import listed
from penstock.client._sync.waiting import changes, until_settled
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.errors import Failed
from penstock.client.work import Change, JobInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._sync.transport import Transport

OPEN = ("queued", "running", "parked")


class Job:
    """A job as last fetched; `refresh` fetches it again."""

    def __init__(self, transport: Transport, data: Mapping[str, Any]) -> None:
        self._transport = transport
        self.info: JobInfo = decode(JobInfo, data)

    @property
    def id(self) -> int:
        return self.info.id

    @property
    def status(self) -> str:
        return self.info.status

    @property
    def result(self) -> Any:
        return self.info.result

    @property
    def data(self) -> dict[str, Any]:
        """The server's answer as it came, a `JobDetail` or `JobSummary`."""
        return self.info.raw

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.info.kind} {self.status}>"

    def refresh(self) -> Job:
        answer = self._transport.call("GET", "/api/jobs/{job_id}", path={"job_id": self.id})
        self.info = decode(JobInfo, answer["data"])
        return self

    def how_far(self) -> tuple[float, str]:
        progress = self.info.progress if isinstance(self.info.progress, dict) else {}
        return float(progress.get("percent") or 0.0), str(progress.get("step") or self.status)

    def events(self) -> Iterator[Change]:
        """Where it is, at every change until it is over."""
        yield from changes(self, OPEN)

    def wait(self, timeout: float | None = None, *, progress: bool = True) -> Job:
        """Until it is over; Failed, with the error that it ended with, when it did not succeed."""
        until_settled(self, f"Job {self.id}", OPEN, timeout=timeout, show=progress)
        if self.status != "succeeded":
            error = self.info.error or {}
            message = (
                f"Job {self.id} is {self.status}: {error.get('message') or 'no reason was given'}"
            )
            raise Failed(
                message, code=str(error.get("code") or "JOB_FAILED"), status=200, details=error
            )
        return self

    def cancel(self, reason: str = "") -> Job:
        path = {"job_id": self.id}
        self._transport.call(
            "POST", "/api/jobs/{job_id}/cancel", path=path, json={"reason": reason}
        )
        return self.refresh()

    def retry(self) -> Job:
        """The same again, as a new job."""
        answer = self._transport.call("POST", "/api/jobs/{job_id}/retry", path={"job_id": self.id})
        return Job(self._transport, answer["data"]).refresh()

    def actions(self) -> list[shapes.ActionView]:
        """What a maintenance job did, action by action."""
        answer = self._transport.call("GET", "/api/jobs/{job_id}/actions", path={"job_id": self.id})
        rows: list[shapes.ActionView] = answer["data"]
        return rows


class Jobs:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        kind: str,
        payload: Any = None,
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_in: float | None = None,
        deadline_in: float | None = None,
        timeout: float | None = None,
        max_attempts: int | None = None,
        group_id: int | None = None,
        lock_key: str | None = None,
        unique_key: str | None = None,
    ) -> Job:
        """Times are seconds; what is left out is as the kind has it."""
        body = {"kind": kind, "payload": payload} | given(
            queue=queue,
            priority=priority,
            run_in=run_in,
            deadline_in=deadline_in,
            timeout=timeout,
            max_attempts=max_attempts,
            group_id=group_id,
            lock_key=lock_key,
            unique_key=unique_key,
        )
        enqueued: shapes.JobEnqueued = (self._transport.call("POST", "/api/jobs", json=body))[
            "data"
        ]
        return Job(self._transport, enqueued).refresh()

    def get(self, job_id: int) -> Job:
        answer = self._transport.call("GET", "/api/jobs/{job_id}", path={"job_id": job_id})
        return Job(self._transport, answer["data"])

    def list(self, **filters: Unpack[shapes.JobsFilters]) -> Iterator[Job]:
        for item in listed(self._transport, "/api/jobs", **filters):
            yield Job(self._transport, item)


class Schedules:
    """Jobs that are made by the clock."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def set(
        self, name: str, cron: str, job: shapes.JobBody, *, zone: str = "UTC", enabled: bool = True
    ) -> shapes.Schedule:
        """Add or replace one: `set("nightly", "0 3 * * *", {"kind": "probe"},
        zone="Europe/Vienna")`."""
        body: shapes.ScheduleBody = {"cron": cron, "zone": zone, "enabled": enabled, "job": job}
        schedule: shapes.Schedule = self._call("PUT", "/api/schedules/{name}", name, json=body)
        return schedule

    def get(self, name: str) -> shapes.Schedule:
        schedule: shapes.Schedule = self._call("GET", "/api/schedules/{name}", name)
        return schedule

    def list(self, **filters: Unpack[shapes.SchedulesFilters]) -> Iterator[shapes.Schedule]:
        yield from listed(self._transport, "/api/schedules", **filters)

    def drop(self, name: str) -> shapes.ScheduleDropped:
        """Jobs that it made stay."""
        dropped: shapes.ScheduleDropped = self._call("DELETE", "/api/schedules/{name}", name)
        return dropped

    def _call(self, method: str, template: str, name: str, *, json: object = None) -> Any:
        return (self._transport.call(method, template, path={"name": name}, json=json))["data"]
