"""What every launcher is tried on: processes of this machine, a protocol-true API server whose pods
are child processes, and a real cluster.

PENSTOCK_TEST_KUBECONFIG names a kubeconfig of a cluster that may be used;
PENSTOCK_TEST_KUBERNETES_IMAGE is an image with Penstock that its nodes have, and
PENSTOCK_TEST_KUBERNETES_PATCH a JSON patch of the pods, such as mounts.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.launchers.contract import Handle, LaunchRequest
from penstock.launchers.kubernetes.api import KubernetesApi
from penstock.launchers.kubernetes.connection import Connection, from_kubeconfig
from penstock.launchers.kubernetes.ending import Patience
from penstock.launchers.kubernetes.launcher import KubernetesLauncher
from penstock.launchers.kubernetes.manifest import PodSettings
from penstock.launchers.subprocess import SubprocessLauncher
from tests.servers.kubelet import Kubelet
from tests.servers.kubernetes_api import KubernetesServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from penstock.launchers.contract import Launcher

GIB = 1024**3
RUN = Handle(instance_id=7, launch=1)
REAL = os.environ.get("PENSTOCK_TEST_KUBECONFIG")
KINDS = ["subprocess", "kubernetes", *(["cluster"] if REAL else [])]
IMAGE = "penstock:test"
LEAST_RIGHTS = {
    *((verb, "pods") for verb in ("create", "get", "list", "watch", "delete", "patch")),
    *((verb, "services") for verb in ("create", "get", "delete")),
    ("create", "secrets"),
    ("get", "pods/log"),
    ("patch", "pods/resize"),
}
"""What a control plane must be allowed to do; the chart's role has them."""


def order(
    handle: Handle = RUN, *, memory: int = GIB, cpu: int = 1, **environment: str
) -> LaunchRequest:
    return LaunchRequest(
        handle=handle,
        slug="s",
        owner="me",
        backend="ladybug",
        memory_bytes=memory,
        cpu_cores=cpu,
        token="instance-token",
        control_plane_url="http://127.0.0.1:1",
        environment={"PENSTOCK_STORAGE_URL": "file:///there"} | environment,
        secrets={"PENSTOCK_STORAGE_SECRET_ACCESS_KEY": "storage-secret"},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where runs are; each launcher is another control plane's. Commands are Python's arguments."""

    kind: str
    folder: Path
    stack: AsyncExitStack
    cluster: Cluster | None = None

    async def launcher(self, *arguments: str) -> Launcher:
        if self.cluster is not None:
            return await self.stack.enter_async_context(self.cluster.launcher(*arguments))
        return SubprocessLauncher(self.folder, command=(sys.executable, *arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A namespace of a cluster; `server` and `kubelet` are there if it is not a real one."""

    connection: Connection
    settings: PodSettings
    server: KubernetesServer | None = None
    kubelet: Kubelet | None = None
    patience: Patience = field(default_factory=Patience)
    persistence: float = 60.0

    def control_plane_settings(
        self, folder: Path, port: int, command: Sequence[str]
    ) -> dict[str, Any]:
        """Of a control plane on this machine whose pods run `command`."""
        user = {"token": self.connection.token}
        config = {
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": self.connection.url}}],
            "users": [{"name": "test", "user": user}],
        }
        (folder / "kubeconfig").write_text(json.dumps(config))
        container = {"name": "graph-server", "command": list(command)}
        return {
            "launcher": "kubernetes",
            "kubernetes_kubeconfig": folder / "kubeconfig",
            "kubernetes_namespace": self.settings.namespace,
            "kubernetes_image": self.settings.image,
            "kubernetes_installation": self.settings.installation,
            "kubernetes_python": self.settings.python,
            "kubernetes_url": f"http://127.0.0.1:{port}",
            "kubernetes_pod_patch": {"spec": {"containers": [container]}},
        }

    @asynccontextmanager
    async def launcher(self, *arguments: str, **changes: Any) -> AsyncIterator[KubernetesLauncher]:
        settings = replace(self.settings, **changes)
        if arguments:
            command = {"name": "graph-server", "command": [settings.python, *arguments]}
            patch = dict(settings.pod_patch)
            patch["spec"] = patch.get("spec", {}) | {"containers": [command]}
            settings = replace(settings, pod_patch=patch)
        async with (
            KubernetesApi(self.connection, settings.namespace) as api,
            KubernetesLauncher(
                api, settings, patience=self.patience, persistence=self.persistence
            ) as launcher,
        ):
            yield launcher


@asynccontextmanager
async def simulated_cluster(folder: Path, **fields: Any) -> AsyncIterator[Cluster]:
    async with KubernetesServer() as server, Kubelet(server, folder) as kubelet:
        settings = PodSettings(
            namespace="graphs", installation="test", image=IMAGE, python=sys.executable
        )
        connection = Connection(url=server.url, token="admin", user="admin")
        yield Cluster(
            connection=connection, settings=settings, server=server, kubelet=kubelet, **fields
        )


def real_cluster() -> Cluster:
    assert REAL is not None
    connection = from_kubeconfig(Path(REAL))
    settings = PodSettings(
        namespace=connection.namespace,
        installation=f"test-{os.getpid()}",
        image=os.environ["PENSTOCK_TEST_KUBERNETES_IMAGE"],
        image_pull="Never",
        python=os.environ.get("PENSTOCK_TEST_KUBERNETES_PYTHON", "python"),
        pod_patch=json.loads(os.environ.get("PENSTOCK_TEST_KUBERNETES_PATCH", "{}")),
        volume_gb=1,
    )
    return Cluster(connection=connection, settings=settings)


@asynccontextmanager
async def place_of(kind: str, folder: Path) -> AsyncIterator[Place]:
    """Nothing outlives the block."""
    async with AsyncExitStack() as stack:
        cluster = None
        if kind == "kubernetes":
            cluster = await stack.enter_async_context(simulated_cluster(folder))
        elif kind == "cluster":
            cluster = real_cluster()
        place = Place(kind=kind, folder=folder, stack=stack, cluster=cluster)
        yield place
        last = await place.launcher("-V")
        for run in await last.list():
            await last.stop(run.handle, grace=0)
            await last.remove(run.handle)
    shutil.rmtree(folder, ignore_errors=True)


def python(text: str) -> Sequence[str]:
    return ("-I", "-c", text)
