"""The kernel's Prometheus metrics, on a registry of their own so that two stores in one process do
not collide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge

from penstock.kit.background import BackgroundHealth
from penstock.kit.histogram import BatchHistogram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.jobs.model import Claimed, Reaped
    from penstock.jobs.row_counts import QueueView

PICKUP_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30, 120, 600, 3600)
DURATION_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200)


class KernelMetrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.background = BackgroundHealth(self.registry)
        self._queues: set[str] = set()
        self._depths: dict[str, int] = {}
        self._watchers: list[Callable[[Reaped], None]] = []
        self._depth = Gauge(
            "penstock_queue_depth", "Jobs ready to be claimed.", ["queue"], registry=self.registry
        )
        self._oldest = Gauge(
            "penstock_queue_oldest_wait_seconds",
            "Age of the oldest ready job.",
            ["queue"],
            registry=self.registry,
        )
        self._parked = Gauge(
            "penstock_parked_jobs",
            "Jobs whose work goes on elsewhere.",
            ["queue"],
            registry=self.registry,
        )
        self._estimated = Gauge(
            "penstock_queue_estimated",
            "1 where the numbers of a queue are estimated, for it is too large to be counted.",
            ["queue"],
            registry=self.registry,
        )
        self._running = Gauge(
            "penstock_running_jobs", "Jobs held by a worker.", ["queue"], registry=self.registry
        )
        self._pickup = BatchHistogram(
            "penstock_job_pickup_seconds", "From the enqueue to the claim.", "queue", PICKUP_BUCKETS
        )
        self.registry.register(self._pickup)
        self._reclaimed = Counter(
            "penstock_reaper_jobs_reclaimed", "Jobs taken back.", registry=self.registry
        )
        self._failed = Counter(
            "penstock_reaper_jobs_failed", "Jobs failed by the reaper.", registry=self.registry
        )
        self._stale = Counter(
            "penstock_stale_attempts", "Writes refused by the fence.", registry=self.registry
        )
        self._refusals = Counter(
            "penstock_lock_wait_refusals", "Enqueues refused by a lock.", registry=self.registry
        )

    def claimed(self, queue: str, claimed: Sequence[Claimed]) -> None:
        self._pickup.observe(
            queue, [job.waited for job in claimed if job.attempt_no == 1 and job.polls == 0]
        )

    def stale(self) -> None:
        self._stale.inc()

    def lock_refused(self) -> None:
        self._refusals.inc()

    def on_reaped(self, watch: Callable[[Reaped], None]) -> None:
        """Let a workload count what the reaper did to its own kinds."""
        self._watchers.append(watch)

    def reaped(self, reaped: Reaped) -> None:
        for watch in self._watchers:
            watch(reaped)
        self._reclaimed.inc(reaped.requeued)
        self._failed.inc(reaped.failed + reaped.expired)

    def know(self, queues: Iterable[str]) -> None:
        """Show these queues as empty ones before anything was ever put into them: a scaler reads a
        zero, not a gap."""
        self._queues.update(queues)

    def depth(self, queue: str) -> int:
        """Ready jobs, as the last look at the queues found them."""
        return self._depths.get(queue, 0)

    def queues(self, queue_views: Iterable[QueueView]) -> None:
        """Set the gauges from a look at the queues; one that is empty now goes back to zero."""
        views = {view.queue: view for view in queue_views}
        self._queues.update(views)
        for queue in self._queues:
            view = views.get(queue)
            self._depths[queue] = view.ready if view else 0
            self._depth.labels(queue).set(self._depths[queue])
            self._oldest.labels(queue).set((view.oldest_wait or 0) if view else 0)
            self._parked.labels(queue).set(view.parked if view else 0)
            self._running.labels(queue).set(view.running if view else 0)
            self._estimated.labels(queue).set(view.estimated if view else 0)
