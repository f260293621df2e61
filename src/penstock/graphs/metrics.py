"""What a scaler and an operator watch of the exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

from penstock.graphs.order import KINDS, QUEUE

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from penstock.jobs.metrics import KernelMetrics
    from penstock.jobs.model import Reaped


class ExportMetrics:
    def __init__(self, registry: CollectorRegistry, kernel: KernelMetrics) -> None:
        depth = Gauge("graph_olap_export_queue_depth", "Export jobs that wait for a worker.", registry=registry)
        depth.set_function(lambda: kernel.depth(QUEUE))
        self._stale = Counter(
            "stale_export_claims_reset", "Export jobs taken back from workers that vanished.", registry=registry
        )
        kernel.on_reaped(self._reaped)

    def _reaped(self, reaped: Reaped) -> None:
        self._stale.inc(sum(reaped.kinds.get(kind, 0) for kind in KINDS))
