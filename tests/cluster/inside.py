"""Process 1 of the cluster's namespaces: starts it, tries Penstock on it, and ends with it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import figure, publish, show
from rich.console import Console

from penstock.client.errors import ClientError
from tests.cluster import cluster as clusters
from tests.cluster import conformance
from tests.cluster.failures import ClusterFailed
from tests.cluster.installation import install
from tests.cluster.outside import outside
from tests.cluster.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.figures import Figure

    from tests.cluster.cluster import Cluster

STEPS = ("launchers", "install", *WORKLOADS)
_say = Console(soft_wrap=True, highlight=False, markup=False, stderr=True).print


def main(arguments: Sequence[str]) -> int:
    work, steps = Path(arguments[0]), arguments[1:] or STEPS
    if strange := set(steps) - set(STEPS):
        _say(f"[cluster] there is no {', '.join(strange)}; there are {', '.join(STEPS)}")
        return 2
    try:
        cluster = clusters.start(work)
        cluster.load_images()
        try:
            figures = try_penstock(cluster, steps)
        except BaseException:
            cluster.describe()
            raise
    except (ClusterFailed, ClientError) as e:
        _say(f"[cluster] {e}")
        return 1
    figures = {"node_ready": figure(cluster.seconds, "s"), **figures}
    return publish("cluster", figures) if set(steps) == set(STEPS) else show("cluster", figures)


def try_penstock(cluster: Cluster, steps: Sequence[str]) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    if "launchers" in steps:
        _say("[cluster] the launchers' conformance suite")
        figures |= conformance.run(cluster)
    if set(steps) <= {"launchers"}:
        return figures
    with outside(cluster.work) as services:
        _say("[cluster] helm install")
        installation = install(cluster.work, cluster.kubectl, services)
        figures["helm_install"] = figure(installation.seconds, "s")
        for name, workload in WORKLOADS.items():
            if name in steps:
                _say(f"[cluster] {name}")
                started = time.monotonic()
                figures |= workload(installation, services)
                _say(f"[cluster] {name}: {time.monotonic() - started:.0f} s")
    return figures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
