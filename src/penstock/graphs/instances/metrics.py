"""Prometheus metrics of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class InstanceMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.passes = Counter(
            "reconciliation_passes", "Passes of the instances' reconciliation.", registry=registry
        )
        self.duration = Histogram(
            "reconciliation_pass_duration_seconds", "Length of such a pass.", registry=registry
        )
        self.orphans = Counter(
            "orphaned_pods_detected",
            "Graph servers that belong to no instance; they were ended.",
            registry=registry,
        )
        self.missing = Counter(
            "missing_pods_detected", "Instances whose graph server was gone.", registry=registry
        )
        self.drift = Counter(
            "status_drift_detected",
            "Instances that were not what their rows said.",
            registry=registry,
        )
        self.memory = Gauge(
            "penstock_instances_memory_bytes",
            "Memory that the graph servers here hold.",
            registry=registry,
        )
        self.disk = Gauge(
            "penstock_instances_disk_bytes",
            "Disk that the graph servers here take.",
            registry=registry,
        )
        self.running = Gauge(
            "penstock_instances_running", "Graph servers that run here.", registry=registry
        )
