"""A Kubernetes with one node, in the namespaces of this process."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.launchers.kubernetes.connection import from_kubeconfig
from tests.cluster import machine, parts
from tests.cluster.control_plane import control_plane
from tests.cluster.failures import ClusterFailed
from tests.cluster.node import node
from tests.cluster.resolver import Resolver

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.kubectl import Kubectl
    from tests.cluster.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    work: Path
    control_plane: ControlPlane
    node: Node
    seconds: float
    """From nothing to a node that is ready."""

    @property
    def kubectl(self) -> Kubectl:
        return self.control_plane.kubectl

    @property
    def kubeconfig(self) -> Path:
        return self.kubectl.kubeconfig

    def describe(self) -> None:
        """Write what there is, and what happened, beside the logs."""
        for what in ("pods", "events", "nodes", "jobs", "scaledobjects", "hpa"):
            with suppress(ClusterFailed):
                shown = self.kubectl("get", what, "--all-namespaces", "-o", "yaml")
                (self.work / "logs" / f"{what}.yaml").write_text(shown)

    def load_images(self) -> None:
        for name in parts.IMAGE_NAMES:
            self.node.load(parts.images() / f"{name}.tar")


def start(work: Path) -> Cluster:
    """Once, by process 1 of its namespaces. It need not stop anything: with it everything ends."""
    started = time.monotonic()
    machine.prepare()
    plane = control_plane(work, parts.kubernetes())
    the_node = node(
        work,
        programs=parts.kubernetes(),
        packages=parts.packages(),
        control_plane=plane,
        resolver=machine.NODE_IP,
    )
    plane.start()
    the_node.start()
    Resolver(machine.NODE_IP, from_kubeconfig(plane.kubectl.kubeconfig)).start()
    return Cluster(
        work=work, control_plane=plane, node=the_node, seconds=time.monotonic() - started
    )
