"""Request bodies of the jobs API, validated field by field; `value()` gives the kernel's value.

The kernel checks its input in any case. The bounds here are for callers, who get the name of the
field, and for the OpenAPI description, which is made from these classes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, Strict

from penstock.jobs import limits, model
from penstock.jobs.model import Json

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,199}$"
Whole: TypeAlias = Annotated[int, Strict()]
Id: TypeAlias = Annotated[int, Strict(), Field(ge=1, le=limits.MAX_JOB_ID)]
Name: TypeAlias = Annotated[
    str, Field(pattern=NAME_PATTERN, min_length=1, max_length=200, examples=["default"])
]
Text: TypeAlias = Annotated[str, Field(max_length=limits.MAX_KEY, pattern=r"^[^\x00]*$")]
Key: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=limits.MAX_KEY, pattern=r"^[^\x00]*$")
]
Pause: TypeAlias = Annotated[float, Strict(), Field(ge=0, le=limits.MAX_PAUSE)]
Span: TypeAlias = Annotated[float, Strict(), Field(ge=0, le=limits.MAX_SPAN.total_seconds())]
Timeout: TypeAlias = Annotated[float, Strict(), Field(ge=1, le=limits.MAX_TIMEOUT.total_seconds())]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class JobBody(Body):
    """A job to be done. Omitted fields are taken from the policy of its kind; durations are in
    seconds.
    """

    kind: Annotated[Name, Field(examples=["probe"])]
    payload: Annotated[
        Json, Field(description="Whatever the kind's handler reads.", examples=[{"steps": 1}])
    ] = {}
    queue: Name | None = None
    priority: (
        Annotated[Whole, Field(ge=0, le=9, description="0 is the most urgent, 9 the least.")] | None
    ) = None
    run_in: Span | None = None
    deadline_in: Span | None = None
    timeout: Timeout | None = None
    max_attempts: Annotated[Whole, Field(ge=1, le=1000)] | None = None
    group_id: Id | None = None
    lock_key: (
        Annotated[Key, Field(description="At most one job holds it, from enqueue to end.")] | None
    ) = None
    unique_key: Annotated[Key, Field(description="A second job with it is not made.")] | None = None

    def value(self) -> model.JobSpec:
        fields: dict[str, Any] = self.model_dump(exclude_none=True, exclude={"payload"})
        for name in fields.keys() & {"run_in", "deadline_in", "timeout"}:
            fields[name] = timedelta(seconds=fields[name])
        return model.JobSpec(**fields, payload=self.payload)


class SpecBody(JobBody):
    """A job as a worker enqueues or spawns it."""

    retry_of: Id | None = None
    created_by: Key | None = None
    trace: Key | None = None


class EnqueueBody(Body):
    jobs: Annotated[list[SpecBody], Field(max_length=limits.MAX_BATCH)]


class FenceBody(Body):
    job_id: Annotated[Id, Field(examples=[1])]
    attempt_id: Annotated[UUID, Field(examples=["01997b1e-0c3f-7c5a-9a51-3d2f6c1b8e70"])]

    def fence(self) -> model.Fence:
        return model.Fence(job_id=self.job_id, attempt_id=self.attempt_id)


class SucceededBody(FenceBody):
    status: Literal["succeeded"]
    result: Json = None
    spawn: Annotated[list[SpecBody], Field(max_length=limits.MAX_BATCH)] = []

    def value(self) -> model.Ending:
        outcome = model.Succeeded(result=self.result, spawn=[s.value() for s in self.spawn])
        return model.Ending(fence=self.fence(), outcome=outcome)


class FailedBody(FenceBody):
    status: Literal["failed"]
    error: Json
    retry_in: Pause | None = None

    def value(self) -> model.Ending:
        return model.Ending(
            fence=self.fence(), outcome=model.Failed(error=self.error, retry_in=self.retry_in)
        )


EndingBody: TypeAlias = Annotated[SucceededBody | FailedBody, Field(discriminator="status")]


class FinishBody(Body):
    endings: Annotated[list[EndingBody], Field(max_length=limits.MAX_BATCH)]


class ClaimBody(Body):
    worker: Annotated[Name, Field(examples=["host-7-a1b2c3"])]
    queues: Annotated[list[Name], Field(max_length=limits.MAX_QUEUES, examples=[["default"]])]
    limit: Annotated[Whole, Field(ge=0, le=limits.MAX_CLAIM)] = 1
    wait_seconds: Annotated[float, Strict(), Field(ge=0, le=limits.MAX_WAIT)] = 0
    session: (
        Annotated[UUID, Field(description="The process that claims, as it registered.")] | None
    ) = None


class ExchangeBody(ClaimBody, FinishBody):
    pass


class WorkerBody(Body):
    worker: Annotated[Name, Field(examples=["host-7-a1b2c3"])]
    session: UUID
    queues: Annotated[list[Name], Field(max_length=limits.MAX_QUEUES, examples=[["default"]])]
    slots: Annotated[Whole, Field(ge=0, le=100_000)]
    version: Annotated[Text, Field(examples=["0.1.0"])]


class RegistrationBody(WorkerBody):
    def value(self) -> model.Registration:
        return model.Registration(
            worker=self.worker,
            session=self.session,
            queues=self.queues,
            slots=self.slots,
            version=self.version,
        )


class HeartbeatBody(WorkerBody):
    held: Annotated[list[FenceBody], Field(max_length=limits.MAX_BATCH)] = []

    def value(self) -> model.Beat:
        return model.Beat(
            worker=self.worker,
            session=self.session,
            queues=self.queues,
            slots=self.slots,
            version=self.version,
            held=[f.fence() for f in self.held],
        )


class ProgressUpdateBody(FenceBody):
    progress: Json

    def value(self) -> model.ProgressUpdate:
        return model.ProgressUpdate(fence=self.fence(), progress=self.progress)


class ProgressBody(Body):
    updates: Annotated[list[ProgressUpdateBody], Field(max_length=limits.MAX_BATCH)]


class ParkingBody(FenceBody):
    state: Json
    wake_in: Pause
    unhandled: Annotated[bool, Strict()] = Field(
        default=False,
        description="The worker has no handler for the kind and leaves the job to another.",
    )

    def value(self) -> model.Parking:
        return model.Parking(
            fence=self.fence(), state=self.state, wake_in=self.wake_in, unhandled=self.unhandled
        )


class ParkBody(Body):
    parkings: Annotated[list[ParkingBody], Field(max_length=limits.MAX_BATCH)]


class ReleasedBody(FenceBody):
    reason: Text = ""

    def value(self) -> model.Release:
        return model.Release(fence=self.fence(), reason=self.reason)


class ReleaseBody(Body):
    releases: Annotated[list[ReleasedBody], Field(max_length=limits.MAX_BATCH)]


class CancelBody(Body):
    job_id: Annotated[Id, Field(examples=[1])]
    actor: Annotated[Key, Field(examples=["ann"])]
    reason: Text = ""


class LeaveBody(Body):
    worker: Annotated[Name, Field(examples=["host-7-a1b2c3"])]
    session: UUID
