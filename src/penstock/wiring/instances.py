"""Builds the services and loops that run graph servers from the settings."""

from __future__ import annotations

import os
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.api.services import InstanceServices
from penstock.graph_server.settings import SECRETS, passed_on, secrets_in_files
from penstock.graphs.instances.controller import CHANNEL, InstanceController
from penstock.graphs.instances.creation import Creation
from penstock.graphs.instances.graph_servers import GraphServers
from penstock.graphs.instances.metrics import InstanceMetrics
from penstock.graphs.instances.quota import MemoryLimits, Quota
from penstock.graphs.instances.repository import Instances
from penstock.graphs.instances.resource_monitor import ResourceMonitor
from penstock.graphs.instances.resync import InstanceResync
from penstock.graphs.instances.service import InstanceService
from penstock.graphs.instances.telemetry import InstanceTelemetry
from penstock.graphs.instances.waiting_instances import WaitingInstances
from penstock.kit.cache import InvalidatedCache
from penstock.kit.errors import Unavailable
from penstock.wiring.launchers import url_for_pods

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from prometheus_client import CollectorRegistry

    from penstock.accounts.instance_token import InstanceTokens
    from penstock.api.services import Loops
    from penstock.graphs.mappings.repository import Mappings
    from penstock.graphs.mappings.source_rights import SourceRights
    from penstock.graphs.runtime_config import PlatformConfig
    from penstock.graphs.snapshots.creation import MappedSnapshots
    from penstock.graphs.snapshots.repository import Snapshots
    from penstock.jobs.notifier import Notifier
    from penstock.kit.background import BackgroundHealth
    from penstock.kit.db import Db
    from penstock.kit.loop import LoopMetrics
    from penstock.launchers.contract import Launcher
    from penstock.wiring.settings import Settings

RECONCILE_SECONDS = 300.0
MONITOR_SECONDS = 60.0
_STORAGE = (
    "storage_url",
    "storage_endpoint",
    "storage_region",
    "storage_access_key_id",
    "storage_secret_access_key",
    "storage_allow_http",
)


def instance_services(
    settings: Settings,
    db: Db,
    notifier: Notifier,
    launcher: Launcher,
    tokens: InstanceTokens | None,
    *,
    snapshots: Snapshots,
    mappings: Mappings,
    mapped: MappedSnapshots,
    config: PlatformConfig,
    rights: SourceRights,
) -> InstanceServices:
    def token_of(instance_id: int) -> str:
        if tokens is None:
            raise Unavailable(
                "Graph servers need the internal API.", hint="Set PENSTOCK_SERVICE_TOKEN."
            )
        return tokens.mint(instance_id)

    store = Instances(
        db,
        place=launcher.place,
        slug=lambda: secrets.token_hex(12),
        on_change=lambda: notifier.ring(CHANNEL, 0),
        cache=InvalidatedCache(lambda: notifier.version(CHANNEL)),
    )
    memory = MemoryLimits(
        per_user_gb=settings.instance_memory_per_user_gb, total_gb=settings.instance_memory_total_gb
    )
    quota, servers = Quota(db, config, memory), GraphServers(launcher, token_of)
    snapshots.follow(WaitingInstances(store, quota))
    return InstanceServices(
        store=store,
        creation=Creation(
            db,
            store,
            snapshots=snapshots,
            mappings=mappings,
            mapped=mapped,
            config=config,
            quota=quota,
            rights=rights,
        ),
        steps=InstanceService(
            db, store, launcher, servers, quota=quota, config=config, snapshots=snapshots
        ),
        vitals=InstanceTelemetry(db),
        quota=quota,
        servers=servers,
        launcher=launcher,
        token_of=token_of,
        public_url=public_url(settings),
    )


@asynccontextmanager
async def instance_controller(
    settings: Settings,
    db: Db,
    notifier: Notifier,
    services: InstanceServices,
    health: BackgroundHealth,
) -> AsyncIterator[InstanceController]:
    """Run the instance controller until the block exits; graph servers keep running after it."""
    controller = InstanceController(
        db,
        services.store,
        services.launcher,
        services.servers,
        notifier,
        token_of=services.token_of,
        control_plane_url=internal_url(settings),
        environment=server_environment(settings),
        secrets=server_secrets(settings),
        health=health,
    )
    async with services.servers, controller:
        yield controller


def instance_loops(
    db: Db, services: InstanceServices, metrics: LoopMetrics, registry: CollectorRegistry
) -> Loops:
    counts = InstanceMetrics(registry)
    return (
        InstanceResync(
            db,
            services.store,
            services.steps,
            services.launcher,
            every=RECONCILE_SECONDS,
            metrics=metrics,
            counts=counts,
        ),
        ResourceMonitor(
            db,
            services.store,
            services.vitals,
            services.launcher,
            every=MONITOR_SECONDS,
            metrics=metrics,
            counts=counts,
        ),
    )


def public_url(settings: Settings) -> str:
    return (settings.url or _own_url(settings)).rstrip("/")


def internal_url(settings: Settings) -> str:
    """The URL for graph servers: on this machine the local address, bypassing any proxy in front,
    unless a TLS certificate requires the public name; from pods, one that leads there."""
    if settings.launcher == "kubernetes":
        return url_for_pods(settings)
    if settings.port and settings.tls_cert is None:
        return _own_url(settings)
    return public_url(settings)


def _own_url(settings: Settings) -> str:
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104 - asked, not bound
    name = f"[{host}]" if ":" in host else host
    return f"{settings.scheme}://{name}:{settings.port}"


def server_environment(settings: Settings) -> dict[str, str]:
    """Storage, logging and the operator's settings for graph servers, without secrets."""
    return {
        name: value for name, value in _server_settings(settings).items() if name not in SECRETS
    }


def server_secrets(settings: Settings) -> dict[str, str]:
    """Settings of graph servers that no other process may read."""
    return {name: value for name, value in _server_settings(settings).items() if name in SECRETS}


def _server_settings(settings: Settings) -> dict[str, str]:
    storage = {name: getattr(settings, name) for name in _STORAGE} | {
        "storage_url": settings.storage_root
    }
    chosen: dict[str, str] = {
        "PENSTOCK_LOG_LEVEL": settings.log_level,
        "PENSTOCK_LOG_FORM": settings.log_form,
    }
    for name, value in storage.items():
        if value is not None:
            plain = value.get_secret_value() if hasattr(value, "get_secret_value") else value
            chosen[f"PENSTOCK_{name.upper()}"] = (
                str(plain).lower() if isinstance(plain, bool) else str(plain)
            )
    return chosen | passed_on(secrets_in_files() | os.environ)
