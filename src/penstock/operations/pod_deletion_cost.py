"""Tells Kubernetes which pods of workers are busy, so that scaling in removes idle ones first.

A Deployment that loses replicas deletes the pods with the lowest deletion cost. The cost of a pod
is the number of jobs that are claimed under its name. The control plane writes it, not the worker:
the right to patch pods cannot be limited to one's own, and a worker runs the queries of users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.kit.loop import Loop, LoopMetrics
from penstock.kit.sqlfile import load
from penstock.launchers.kubernetes.errors import Missing

if TYPE_CHECKING:
    from penstock.kit.db import Db
    from penstock.launchers.kubernetes.api import KubernetesApi

SQL = load("penstock.jobs.sql")
COST = "controller.kubernetes.io/pod-deletion-cost"
MOST_PATCHES = 100
"""In one pass: a fleet whose jobs all change must not keep the API server busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    changed: int = 0

    @property
    def total(self) -> int:
        return self.changed


class PodDeletionCost(Loop[Weighed]):
    name = "pod_deletion_cost"

    def __init__(
        self, db: Db, api: KubernetesApi, *, selector: str, every: float, metrics: LoopMetrics
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._api = api
        self._selector = selector

    async def run_once(self) -> Weighed:
        pods, _ = await self._api.list("pods", selector=self._selector)
        rows = await self._db.fetch(SQL.running_by_worker) if pods else []
        running = {row["worker"]: row["running"] for row in rows}
        costs = [
            (name, cost)
            for pod in pods
            if (cost := running.get(name := pod["metadata"]["name"], 0)) != _cost(pod)
        ]
        # Pods that became busy come first: to lose one of these is what this prevents.
        costs.sort(key=lambda entry: -entry[1])
        changed = 0
        for name, cost in costs[:MOST_PATCHES]:
            try:
                annotations = {COST: str(cost)}
                await self._api.patch("pods", name, {"metadata": {"annotations": annotations}})
            except Missing:
                continue  # it was deleted meanwhile
            changed += 1
        return Weighed(changed=changed)


def _cost(pod: dict[str, Any]) -> int:
    """0 without the annotation, as Kubernetes has it; what nobody can read is written anew."""
    written = (pod["metadata"].get("annotations") or {}).get(COST, "0")
    try:
        return int(written)
    except ValueError:
        return -1
