"""The suite of all launchers, on this cluster's API server and its pods."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from bench.figures import figure

from tests.cluster import parts
from tests.cluster.certificates import kubeconfig
from tests.cluster.control_plane import API
from tests.cluster.failures import ClusterFailed
from tests.cluster.program import wait_until
from tests.servers.parts import REPOSITORY

if TYPE_CHECKING:
    from bench.figures import Figure

    from tests.cluster.cluster import Cluster

_NAMESPACE = "launchers"
_SUITE = "tests/launchers/test_conformance.py"


def run(cluster: Cluster) -> dict[str, Figure]:
    kubectl, plane = cluster.kubectl, cluster.control_plane
    kubectl("create", "namespace", _NAMESPACE)
    wait_until(
        lambda: kubectl.works("get", "serviceaccount", "default", "-n", _NAMESPACE),
        "the namespace has its service account",
        within=60,
    )
    user, _ = plane.user("launchers", "launchers", "system:masters")
    config = kubeconfig(
        cluster.work / "launchers.kubeconfig", user, plane.authority, API, _NAMESPACE
    )
    environment = {
        **os.environ,
        "PENSTOCK_TEST_KUBECONFIG": str(config),
        "PENSTOCK_TEST_KUBERNETES_IMAGE": parts.IMAGE_NAMES["graph-server"],
    }
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-k", "cluster", _SUITE]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False)
    if done.returncode != 0:
        raise ClusterFailed("the launchers' conformance suite fails on the cluster")
    return {"launcher_conformance": figure(time.monotonic() - started, "s")}
