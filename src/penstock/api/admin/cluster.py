"""Cluster-wide health, instance counts and resource metrics."""

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from penstock.api.errors import PUBLIC, declare
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data
from penstock.api.services import HasGraphs, HasOperations, ServicesDep
from penstock.kit.clock import SYSTEM
from penstock.operations.health import HealthWord, OverallWord, overall

router = APIRouter(
    prefix="/api/cluster", tags=["operations"], route_class=StrictRoute, responses=declare(*PUBLIC)
)


class Component(BaseModel):
    status: HealthWord
    latency_ms: float = Field(examples=[1.7])
    error: str | None


class ClusterHealth(BaseModel):
    status: OverallWord = Field(
        description="unhealthy without the database, degraded without another component."
    )
    checked_at: datetime
    components: dict[str, Component] = Field(
        examples=[{"database": {"status": "healthy", "latency_ms": 1.7, "error": None}}]
    )


class OwnerCount(BaseModel):
    owner_username: str = Field(examples=["ann"])
    count: int = Field(examples=[1])


class Limits(BaseModel):
    per_analyst: int = Field(examples=[10])
    cluster_total: int = Field(examples=[50])
    cluster_used: int
    cluster_available: int


class ClusterInstances(BaseModel):
    total: int = Field(examples=[1])
    by_status: dict[str, int]
    by_owner: list[OwnerCount]
    limits: Limits


class Workers(BaseModel):
    total: int = Field(description="Seen in the last minute.", examples=[1])
    slots: int
    running: int


class ClusterMetrics(BaseModel):
    checked_at: datetime
    mappings: int = Field(examples=[1])
    snapshots: dict[str, int] = Field(description="By status.")
    snapshot_bytes: int
    instances: dict[str, int] = Field(description="By status.")
    instance_memory_bytes: int = Field(description="As reported by running instances.")
    instance_disk_bytes: int
    export_jobs: dict[str, int] = Field(description="By status.")
    export_queue_depth: int = Field(description="Export jobs that wait for a worker.")
    workers: Workers
    database_bytes: int
    database_connections: dict[str, int] = Field(description="Of this control plane.")


@router.get("/health", summary="Check the health of every component")
async def health(operations: HasOperations, _: Permit) -> Data[ClusterHealth]:
    """Checks the database, the storage, the launcher, the workers and each data source
    concurrently, for at most five seconds."""
    answers = await operations.health.ask()
    components = {
        name: Component(status=answer.status, latency_ms=answer.latency_ms, error=answer.error)
        for name, answer in answers.items()
    }
    return Data(
        data=ClusterHealth(status=overall(answers), checked_at=SYSTEM.now(), components=components)
    )


@router.get("/instances", summary="Count the instances of all users")
async def instances(
    graphs: HasGraphs, operations: HasOperations, _: Permit
) -> Data[ClusterInstances]:
    """Owners with the most instances first. The limits count instances that run or are starting."""
    totals = await operations.overview.instances()
    limits = await graphs.config.concurrency()
    owners = sorted(totals.by_owner.items(), key=lambda item: (-item[1], item[0]))
    return Data(
        data=ClusterInstances(
            total=totals.total,
            by_status=totals.by_status,
            by_owner=[OwnerCount(owner_username=owner, count=count) for owner, count in owners],
            limits=Limits(
                per_analyst=limits.per_analyst,
                cluster_total=limits.cluster_total,
                cluster_used=totals.used,
                cluster_available=max(0, limits.cluster_total - totals.used),
            ),
        )
    )


@router.get("/metrics", summary="Show the resource usage of the deployment")
async def metrics(
    services: ServicesDep, operations: HasOperations, _: Permit
) -> Data[ClusterMetrics]:
    """Figures of the whole deployment, from the database; /metrics has those of the processes."""
    use = await operations.overview.use()
    exports = await operations.overview.exports_by_status()
    workers = await services.browser.workers(seconds=60)
    return Data(
        data=ClusterMetrics(
            checked_at=SYSTEM.now(),
            **use,
            snapshots=await operations.overview.snapshots_by_status(),
            instances=(await operations.overview.instances()).by_status,
            export_jobs=exports,
            export_queue_depth=exports.get("pending", 0),
            workers=Workers(
                total=len(workers),
                slots=sum(w.slots for w in workers),
                running=sum(w.running for w in workers),
            ),
            database_connections=operations.overview.connections(),
        )
    )
