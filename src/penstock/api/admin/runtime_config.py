"""Runtime configuration: lifecycles, concurrency limits, read-only mode and export duration.

Each change takes effect in every control plane before its response, and is audited.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field, StrictBool, model_validator

from penstock.api.errors import PUBLIC, declare
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data
from penstock.api.services import HasGraphs
from penstock.graphs import duration
from penstock.graphs import runtime_config as platform
from penstock.graphs.runtime_config import (
    LONGEST_EXPORT,
    MAX_MESSAGE,
    MOST_IN_CLUSTER,
    MOST_PER_ANALYST,
    SHORTEST_EXPORT,
)
from penstock.jobs.http_bodies import Body, Whole
from penstock.kit.errors import PayloadTooLarge

router = APIRouter(
    prefix="/api/config", tags=["operations"], route_class=StrictRoute, responses=declare(*PUBLIC)
)
CHANGES = declare(*PUBLIC, PayloadTooLarge)
Span = Annotated[
    str,
    Field(max_length=100, description="An ISO 8601 duration; null: no limit.", examples=["P7D"]),
]
Analysts = Annotated[Whole, Field(ge=1, le=MOST_PER_ANALYST, examples=[10])]
Cluster = Annotated[Whole, Field(ge=1, le=MOST_IN_CLUSTER, examples=[50])]
Seconds = Annotated[
    Whole,
    Field(ge=SHORTEST_EXPORT.total_seconds(), le=LONGEST_EXPORT.total_seconds(), examples=[3600]),
]


class Rule(BaseModel):
    default_ttl: Span | None
    default_inactivity: Span | None
    max_ttl: Span | None


class Lifecycle(BaseModel):
    mapping: Rule
    snapshot: Rule
    instance: Rule


class RuleBody(Body):
    """Omitted fields keep their values; null clears one."""

    default_ttl: Span | None = None
    default_inactivity: Span | None = None
    max_ttl: Span | None = None

    def spans(self, kind: str) -> dict[str, timedelta | None]:
        fields = self.model_dump(exclude_unset=True)
        return {
            name: None if text is None else duration.parse(text, field=f"{kind}.{name}")
            for name, text in fields.items()
        }


class LifecycleBody(Body):
    mapping: RuleBody | None = None
    snapshot: RuleBody | None = None
    instance: RuleBody | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "LifecycleBody":
        if not any((self.mapping, self.snapshot, self.instance)):
            raise ValueError("name at least one of mapping, snapshot and instance")
        return self

    def changes(self) -> Mapping[platform.ResourceKind, Mapping[str, timedelta | None]]:
        rules = {kind: getattr(self, kind) for kind in platform.RESOURCE_KINDS}
        return {kind: rule.spans(kind) for kind, rule in rules.items() if rule is not None}


class Updated(BaseModel):
    updated: bool = Field(examples=[True])


class Concurrency(BaseModel):
    per_analyst: Analysts
    cluster_total: Cluster
    updated_at: datetime | None = Field(description="Null while the default applies.")


class ConcurrencyBody(Body):
    per_analyst: Analysts
    cluster_total: Cluster


class Maintenance(BaseModel):
    enabled: bool = Field(examples=[False])
    message: str = Field(examples=["Back at noon."])
    updated_at: datetime | None
    updated_by: str | None


class MaintenanceBody(Body):
    enabled: Annotated[StrictBool, Field(examples=[False])]
    message: Annotated[
        str,
        Field(max_length=MAX_MESSAGE, pattern=r"^[^\x00]*$", description="Shown to callers."),
    ] = ""


class Export(BaseModel):
    max_duration_seconds: Seconds


class ExportBody(Body):
    max_duration_seconds: Seconds


@router.get("/lifecycle", summary="Show the lifecycle rules")
async def lifecycle(graphs: HasGraphs, _: Permit) -> Data[Lifecycle]:
    rules = await graphs.config.lifecycle()
    return Data(data=Lifecycle(**{kind: _rule(rule) for kind, rule in rules.items()}))


@router.put("/lifecycle", summary="Set the lifecycle rules", responses=CHANGES)
async def set_lifecycle(body: LifecycleBody, graphs: HasGraphs, grant: Permit) -> Data[Updated]:
    """Applies to resources created or changed from now on; existing ones keep their expiry."""
    await graphs.config.set_lifecycle(body.changes(), actor=grant.username)
    return Data(data=Updated(updated=True))


@router.get("/concurrency", summary="Show the instance limits")
async def concurrency(graphs: HasGraphs, _: Permit) -> Data[Concurrency]:
    return Data(data=_concurrency(await graphs.config.concurrency()))


@router.put("/concurrency", summary="Set the instance limits", responses=CHANGES)
async def set_concurrency(
    body: ConcurrencyBody, graphs: HasGraphs, grant: Permit
) -> Data[Concurrency]:
    """A lower limit stops no running instance; it only refuses new ones."""
    changed = await graphs.config.set_concurrency(
        per_analyst=body.per_analyst, cluster_total=body.cluster_total, actor=grant.username
    )
    return Data(data=_concurrency(changed))


@router.get("/maintenance", summary="Show the read-only mode")
async def maintenance(graphs: HasGraphs, _: Permit) -> Data[Maintenance]:
    return Data(data=_maintenance(await graphs.config.maintenance()))


@router.put("/maintenance", summary="Turn the read-only mode on or off", responses=CHANGES)
async def set_maintenance(
    body: MaintenanceBody, graphs: HasGraphs, grant: Permit
) -> Data[Maintenance]:
    """While it is on, creating resources is 503 MAINTENANCE with the message; reads still work."""
    changed = await graphs.config.set_maintenance(
        enabled=body.enabled, message=body.message, actor=grant.username
    )
    return Data(data=_maintenance(changed))


@router.get("/export", summary="Show the maximum duration of exports")
async def export(graphs: HasGraphs, _: Permit) -> Data[Export]:
    return Data(data=_export(await graphs.config.export()))


@router.put("/export", summary="Set the maximum duration of exports", responses=CHANGES)
async def set_export(body: ExportBody, graphs: HasGraphs, grant: Permit) -> Data[Export]:
    """Also applies to running exports: one that exceeds it fails within seconds."""
    longest = timedelta(seconds=body.max_duration_seconds)
    return Data(data=_export(await graphs.config.set_export(longest, actor=grant.username)))


def _rule(rule: platform.LifecycleRule) -> Rule:
    spans = (rule.default_ttl, rule.default_inactivity, rule.max_ttl)
    ttl, inactivity, longest = (None if span is None else duration.text(span) for span in spans)
    return Rule(default_ttl=ttl, default_inactivity=inactivity, max_ttl=longest)


def _concurrency(limits: platform.Concurrency) -> Concurrency:
    return Concurrency(
        per_analyst=limits.per_analyst,
        cluster_total=limits.cluster_total,
        updated_at=limits.updated_at,
    )


def _maintenance(mode: platform.ReadOnlyMode) -> Maintenance:
    return Maintenance(
        enabled=mode.enabled,
        message=mode.message,
        updated_at=mode.updated_at,
        updated_by=mode.updated_by,
    )


def _export(rule: platform.ExportRule) -> Export:
    return Export(max_duration_seconds=int(rule.max_duration.total_seconds()))
