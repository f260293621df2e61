"""Prometheus metrics of exports, the lifecycle loop and database connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

from penstock.graphs.snapshots.payloads import KINDS, QUEUE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prometheus_client import CollectorRegistry

    from penstock.jobs.metrics import KernelMetrics
    from penstock.jobs.model import Reaped
    from penstock.kit.db import Db

PASS_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300)


class ExportMetrics:
    def __init__(self, registry: CollectorRegistry, kernel: KernelMetrics) -> None:
        depth = Gauge(
            "graph_olap_export_queue_depth",
            "Export jobs that wait for a worker.",
            registry=registry,
        )
        depth.set_function(lambda: kernel.depth(QUEUE))
        self._stale = Counter(
            "stale_export_claims_reset",
            "Export jobs requeued from lost workers.",
            registry=registry,
        )
        kernel.on_reaped(self._reaped)

    def _reaped(self, reaped: Reaped) -> None:
        self._stale.inc(sum(reaped.kinds.get(kind, 0) for kind in KINDS))


class LifecycleMetrics:
    """Metrics of the lifecycle loop."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.passes = Counter(
            "lifecycle_passes", "Passes of the lifecycle loop.", registry=registry
        )
        self.duration = Histogram(
            "lifecycle_pass_duration_seconds",
            "Length of such a pass.",
            buckets=PASS_BUCKETS,
            registry=registry,
        )
        self.instances = Counter(
            "ttl_instances_terminated",
            "Instances ended for their age or their idleness.",
            registry=registry,
        )
        self.snapshots = Counter(
            "ttl_snapshots_deleted",
            "Snapshots deleted for their age or their idleness.",
            registry=registry,
        )
        self.mappings = Counter(
            "ttl_mappings_deleted",
            "Mappings deleted for their age or their idleness.",
            registry=registry,
        )


def watch_connections(registry: CollectorRegistry, pools: Sequence[Db]) -> None:
    """Export the connection counts of this process's pools, read at scrape time."""
    gauge = Gauge(
        "graph_olap_database_connections",
        "Database connections of this process.",
        ["state"],
        registry=registry,
    )

    def counted(state: str) -> Callable[[], float]:
        return lambda: sum(pool.connections()[state] for pool in pools)

    for state in ("active", "idle"):
        gauge.labels(state).set_function(counted(state))
