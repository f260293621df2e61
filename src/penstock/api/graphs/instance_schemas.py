"""Request and response models of instances."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from penstock.api.graphs.mapping_schemas import Description, Span, Title
from penstock.api.pagination import Moment, Page
from penstock.api.permissions import Grant
from penstock.api.services import Graphs
from penstock.graphs import duration
from penstock.graphs.instances import model
from penstock.graphs.instances.creation import CreateInstance
from penstock.graphs.instances.model import (
    DEFAULT_BACKEND,
    LEAST_CPU,
    LEAST_MEMORY,
    MOST_CPU,
    MOST_MEMORY,
    NO_REPORT,
    Backend,
    Phase,
    StepStatus,
)
from penstock.graphs.instances.repository import InstanceFilter, SortKey
from penstock.jobs.http_bodies import Body, Id, Text, Whole
from penstock.jobs.limits import MAX_JOB_ID
from penstock.kit.json_value import JsonObject

Status = Literal[
    "waiting_for_snapshot", "starting", "running", "stopping", "failed", "suspended", "resuming"
]
Cpu = Annotated[Whole, Field(ge=LEAST_CPU, le=MOST_CPU, examples=[2])]
Memory = Annotated[Whole, Field(ge=LEAST_MEMORY, le=MOST_MEMORY, examples=[4])]

NO_AGE = "PT0S"
Age = Annotated[
    Span,
    Field(
        description=f"Reuse a snapshot up to this age, if any; {NO_AGE}: always create a new one."
    ),
]


class NewInstance(Body):
    """Creates an instance of a mapping version or of one snapshot."""

    name: Annotated[Title, Field(examples=["Customers on Monday"])]
    mapping_id: Annotated[Id, Field(examples=[1])] | None = None
    mapping_version: Annotated[Whole, Field(ge=1, le=2**31 - 1)] | None = None
    snapshot_id: Id | None = None
    wrapper_type: Annotated[Backend, Field(description="The engine.")] = DEFAULT_BACKEND
    description: Description | None = None
    ttl: Span | None = None
    inactivity_timeout: Span | None = None
    cpu_cores: Cpu | None = None
    max_snapshot_age: Age | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "NewInstance":
        if (self.mapping_id is None) == (self.snapshot_id is None):
            raise ValueError("either mapping_id or snapshot_id is needed, and not both")
        if self.snapshot_id is not None and (self.mapping_version or self.max_snapshot_age):
            raise ValueError("mapping_version and max_snapshot_age belong to a mapping_id")
        return self

    def wish(self, owner: str, starburst_role: str | None, *, is_admin: bool) -> CreateInstance:
        age = self.max_snapshot_age
        plain = self.model_dump(exclude={"max_snapshot_age"})
        return CreateInstance(
            owner=owner,
            starburst_role=starburst_role,
            is_admin=is_admin,
            max_snapshot_age=None
            if age in (None, NO_AGE)
            else duration.parse(age, field="max_snapshot_age"),
            **plain,
        )


class ChangedInstance(Body):
    """Omitted fields keep their values; a null description clears it."""

    name: Title | None = None
    description: Description | None = None


class CpuBody(Body):
    cpu_cores: Cpu


class MemoryBody(Body):
    memory_gb: Annotated[Memory, Field(description="Cannot be lowered.")]


class EndBody(Body):
    force: Annotated[bool, Field(examples=[False])] = False
    reason: Annotated[Text, Field(examples=["Done for today"])] = ""


Number = Annotated[int, Field(ge=1, le=MAX_JOB_ID)]


class InstanceQuery(Page):
    sort_by: SortKey = "created_at"
    snapshot_id: Number | None = None
    mapping_id: Number | None = None
    owner: Text | None = None
    status: Status | None = None
    search: Text | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None

    def filter(self) -> InstanceFilter:
        return InstanceFilter(**{name: getattr(self, name) for name in InstanceFilter.__slots__})


class EventQuery(Page):
    sort_by: Literal["created_at"] = "created_at"


class Step(BaseModel):
    name: str = Field(examples=["Customer"])
    type: str | None = Field(None, examples=["node"])
    status: StepStatus = Field(examples=["completed"])
    row_count: int | None = None


class Progress(BaseModel):
    phase: Phase = Field(examples=["ready"])
    current_step: str | None
    progress_percent: int = Field(examples=[100])
    error_message: str | None
    steps: list[Step]


class Instance(BaseModel):
    id: int = Field(examples=[1])
    snapshot_id: int | None
    snapshot_name: str | None = Field(examples=["Monday"])
    mapping_id: int | None
    mapping_version: int | None
    owner_username: str = Field(examples=["ann"])
    wrapper_type: str = Field(examples=[DEFAULT_BACKEND])
    name: str = Field(examples=["Customers on Monday"])
    description: str | None
    status: Status = Field(examples=["running"])
    instance_url: str = Field(
        examples=["https://penstock.example.com/wrapper/efb7525a4b63460227b0c4f0"]
    )
    explorer_url: str = Field(examples=["https://penstock.example.com/explorer/1"])
    pod_name: str | None
    url_slug: str = Field(examples=["efb7525a4b63460227b0c4f0"])
    progress: Progress
    error_code: str | None
    error_message: str | None
    failed_phase: str | None
    stack_trace: str | None = Field(description="Only for the owner and operators.")
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    last_activity_at: datetime | None
    expires_at: datetime | None
    ttl: str | None = Field(examples=["P1D"])
    inactivity_timeout: str | None = Field(examples=["PT4H"])
    memory_usage_bytes: int | None
    disk_usage_bytes: int | None
    cpu_cores: int = Field(examples=[2])
    memory_gb: int = Field(examples=[4])
    node_count: int | None
    edge_count: int | None


class Ended(BaseModel):
    id: int = Field(examples=[1])
    status: Literal["terminated", "stopping"] = Field(
        description="stopping: its process did not end in time."
    )


class EventShown(BaseModel):
    id: int = Field(validation_alias="event_id")
    instance_id: int
    event_type: str
    actor: str | None
    details: JsonObject
    created_at: datetime


class Mine(BaseModel):
    id: int = Field(validation_alias="instance_id")
    name: str
    status: Status


class UserStatus(BaseModel):
    """The caller's instances and remaining quota."""

    username: str
    active_instances: int = Field(description="Instances that count against the limits.")
    max_instances: int
    remaining_instances: int
    memory_gb: int
    max_memory_gb: int
    can_create: bool
    instances: list[Mine]


SAME = frozenset(Instance.model_fields) & frozenset(model.Instance.__slots__) - {
    "progress",
    "ttl",
    "inactivity_timeout",
    "stack_trace",
}


def shown(instance: model.Instance, graphs: Graphs, grant: Grant) -> Instance:
    parts = graphs.instances
    sees_trace = grant.role.name == "OPS" or grant.username == instance.owner_username
    return Instance(
        id=instance.instance_id,
        instance_url=f"{parts.public_url}/wrapper/{instance.url_slug}",
        explorer_url=f"{parts.public_url}/explorer/{instance.instance_id}",
        pod_name=parts.steps.pod_name(instance),
        progress=progress(instance),
        stack_trace=instance.stack_trace if sees_trace else None,
        ttl=_text(instance.ttl),
        inactivity_timeout=_text(instance.inactivity_timeout),
        **{name: getattr(instance, name) for name in SAME},
    )


def progress(instance: model.Instance) -> Progress:
    """The last progress that the graph server reported; a running instance is complete."""
    report = instance.progress or NO_REPORT
    steps = [Step.model_validate(step) for step in report["steps"]]
    phase, percent = report["phase"], report["progress_percent"]
    match instance.status:
        case model.InstanceStatus.FAILED:
            phase = "failed"
        case (
            model.InstanceStatus.RUNNING
            | model.InstanceStatus.STOPPING
            | model.InstanceStatus.SUSPENDED
        ):
            phase, percent = "ready", 100
            steps = [step.model_copy(update={"status": "completed"}) for step in steps]
    waits = instance.status is model.InstanceStatus.WAITING
    return Progress(
        phase=phase,
        current_step="waiting_for_snapshot"
        if waits
        else None
        if phase == "ready"
        else report["current_step"],
        progress_percent=percent,
        error_message=instance.error_message,
        steps=steps,
    )


def _text(span: timedelta | None) -> str | None:
    return None if span is None else duration.text(span)
