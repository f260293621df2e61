"""The kinds of maintenance jobs, each declared once: queue, lease, attempts, handler.

The control plane and the workers read them; a handler is imported where it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.jobs.kinds import JobKind, KindPolicy
from penstock.maintenance import payloads

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.jobs.handler import Handler
    from penstock.maintenance.control_plane import MaintenanceControlPlane


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceHandlerServices:
    connect: Callable[[], MaintenanceControlPlane]


def _maintainer(services: MaintenanceHandlerServices) -> Handler:
    from penstock.maintenance.handlers import Maintainer

    return Maintainer(services.connect)


def _remote_canceller(services: MaintenanceHandlerServices) -> Handler:
    from penstock.maintenance.handlers import RemoteCanceller

    return RemoteCanceller(services.connect)


JOB_KINDS: tuple[JobKind[MaintenanceHandlerServices], ...] = (
    JobKind(
        policy=KindPolicy(
            name=payloads.MAINTENANCE,
            queue="maintenance",
            lease=90,
            heartbeat=30,
            timeout=14_400,
            max_attempts=3,
            on_sigterm="fail",
        ),
        handler=_maintainer,
    ),
    # Trino or Spark does the work; a worker holds the job only while it polls the statement.
    JobKind(
        policy=KindPolicy(
            name=payloads.REMOTE,
            queue="maintenance",
            lease=60,
            heartbeat=15,
            timeout=14_400,
            max_attempts=3,
            on_sigterm="fail",
            cleanup_kind=payloads.CANCEL_REMOTE,
        ),
        handler=_maintainer,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.CANCEL_REMOTE,
            queue="maintenance",
            priority=1,
            lease=60,
            heartbeat=15,
            timeout=300,
            max_attempts=5,
        ),
        handler=_remote_canceller,
    ),
)
