"""Jobs, and the schedules that create them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._async.listing import listed
from penstock.client._async.resource import AsyncResource
from penstock.client._async.waiting import AsyncWork, failed, percent_and_step
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.json_value import json_object
from penstock.client.models import JobInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Self, Unpack

    from penstock.client import shapes
    from penstock.client._async.transport import AsyncTransport
    from penstock.client.errors import Failed
    from penstock.client.json_value import JsonObject, JsonValue


class AsyncJob(AsyncWork):
    """A job as last fetched; `refresh` fetches it again."""

    _OPEN = ("queued", "running", "parked")
    _GOOD = "succeeded"

    def __init__(self, transport: AsyncTransport, data: Mapping[str, object]) -> None:
        self.info: JobInfo = decode(JobInfo, data)
        super().__init__(transport, job_id=self.info.id)

    @property
    def id(self) -> int:
        return self.info.id

    @property
    def status(self) -> str:
        return self.info.status

    @property
    def result(self) -> JsonValue:
        return self.info.result

    @property
    def data(self) -> JsonObject:
        """The server's answer as it came, a `JobDetail` or `JobSummary`."""
        return self.info.raw

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.info.kind} {self.status}>"

    async def refresh(self) -> Self:
        self.info = decode(JobInfo, await self._call("GET", "/api/jobs/{job_id}"))
        return self

    async def how_far(self) -> tuple[float, str]:
        return percent_and_step(self.info.progress, "step", self.status)

    def _title(self) -> str:
        return f"Job {self.id}"

    def _failure(self) -> Failed:
        error = json_object(self.info.error)
        return failed(
            f"Job {self.id} is {self.status}",
            error.get("message"),
            code=str(error.get("code") or "JOB_FAILED"),
            details=error,
        )

    async def cancel(self, reason: str = "") -> AsyncJob:
        await self._call("POST", "/api/jobs/{job_id}/cancel", json={"reason": reason})
        return await self.refresh()

    async def retry(self) -> AsyncJob:
        """The same again, as a new job."""
        enqueued: shapes.JobEnqueued = await self._call("POST", "/api/jobs/{job_id}/retry")
        return await AsyncJob(self._transport, enqueued).refresh()

    async def actions(self) -> list[shapes.ActionView]:
        """What a maintenance job did, action by action."""
        rows: list[shapes.ActionView] = await self._call("GET", "/api/jobs/{job_id}/actions")
        return rows


class AsyncJobs(AsyncResource):
    async def create(
        self,
        kind: str,
        payload: object = None,
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
    ) -> AsyncJob:
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
        enqueued: shapes.JobEnqueued = await self._call("POST", "/api/jobs", json=body)
        return await AsyncJob(self._transport, enqueued).refresh()

    async def get(self, job_id: int) -> AsyncJob:
        return AsyncJob(
            self._transport, await self._call("GET", "/api/jobs/{job_id}", job_id=job_id)
        )

    async def list(self, **filters: Unpack[shapes.JobsFilters]) -> AsyncIterator[AsyncJob]:
        async for item in listed(self._transport, "/api/jobs", **filters):
            yield AsyncJob(self._transport, item)


class AsyncSchedules(AsyncResource):
    """Jobs that are made by the clock."""

    async def set(
        self, name: str, cron: str, job: shapes.JobBody, *, zone: str = "UTC", enabled: bool = True
    ) -> shapes.Schedule:
        """Add or replace one: `set("nightly", "0 3 * * *", {"kind": "probe"},
        zone="Europe/Vienna")`."""
        body: shapes.ScheduleBody = {"cron": cron, "zone": zone, "enabled": enabled, "job": job}
        schedule: shapes.Schedule = await self._call(
            "PUT", "/api/schedules/{name}", name=name, json=body
        )
        return schedule

    async def get(self, name: str) -> shapes.Schedule:
        schedule: shapes.Schedule = await self._call("GET", "/api/schedules/{name}", name=name)
        return schedule

    async def list(
        self, **filters: Unpack[shapes.SchedulesFilters]
    ) -> AsyncIterator[shapes.Schedule]:
        async for item in listed(self._transport, "/api/schedules", **filters):
            yield item

    async def drop(self, name: str) -> shapes.ScheduleDropped:
        """Jobs that it made stay."""
        dropped: shapes.ScheduleDropped = await self._call(
            "DELETE", "/api/schedules/{name}", name=name
        )
        return dropped
