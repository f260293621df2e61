"""Prometheus metrics of a worker. Gauges are computed at scrape time, not updated per job."""

from __future__ import annotations

import threading
import time
from collections import Counter as Tally
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from penstock.kit.histogram import BatchHistogram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import Metric

    from penstock.worker.attempt import HeldAttempts

DURATION_BUCKETS = (
    0.01,
    0.05,
    0.1,
    0.5,
    1.0,
    5.0,
    15.0,
    60.0,
    300.0,
    900.0,
    1800.0,
    3600.0,
    7200.0,
)


class WorkerMetrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._lock = threading.Lock()
        self.tally: Tally[str] = Tally()
        """Attempts that ended here, by status."""
        self._completed = Counter(
            "penstock_worker_jobs_completed",
            "Attempts that ended here, by what became of them.",
            ["type", "status"],
            registry=self.registry,
        )
        self._rows = Counter(
            "penstock_worker_rows_processed",
            "Rows that handlers reported.",
            ["type"],
            registry=self.registry,
        )
        self._durations = BatchHistogram(
            "penstock_job_duration_seconds",
            "From the claim to the handler's end.",
            "type",
            DURATION_BUCKETS,
        )
        self.registry.register(self._durations)

    def completed(self, kind: str, status: str, count: int = 1) -> None:
        with self._lock:
            self.tally[status] += count
        self._completed.labels(kind, status).inc(count)

    def lasted(self, kind: str, seconds: float) -> None:
        self._durations.observe(kind, (seconds,))

    def rows(self, kind: str, count: int) -> None:
        self._rows.labels(kind).inc(count)

    def watch(self, attempts: HeldAttempts, last_heartbeat: Callable[[], float]) -> None:
        self.registry.register(_LiveGauges(attempts, last_heartbeat))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _LiveGauges(Collector):
    """Gauges, computed at scrape time."""

    def __init__(self, attempts: HeldAttempts, last_heartbeat: Callable[[], float]) -> None:
        self._attempts = attempts
        self._last_heartbeat = last_heartbeat

    def collect(self) -> Iterator[Metric]:
        running, now = self._attempts.running(), time.monotonic()
        yield GaugeMetricFamily(
            "penstock_worker_active_jobs", "Jobs whose handler runs.", value=len(running)
        )
        kinds = GaugeMetricFamily(
            "penstock_worker_current_job_type", "Running jobs by kind.", labels=["type"]
        )
        for kind, count in Tally(a.job.kind for a in running).items():
            kinds.add_metric([kind], count)
        yield kinds
        yield GaugeMetricFamily(
            "penstock_worker_current_job_duration_seconds",
            "Age of the longest running job.",
            value=max((now - a.started for a in running), default=0.0),
        )
        yield GaugeMetricFamily(
            "penstock_worker_last_heartbeat_seconds_ago",
            "Since the last heartbeat that was answered.",
            value=now - self._last_heartbeat(),
        )
