"""The namespaces that the cluster lives in, from within and from without.

The network is a bridge with two addresses of this side: the node's, which servers for pods listen
on, and the one that Kubernetes gives to the API server as a service. Pods are on the bridge, so
they reach both without kube-proxy. Nothing leads out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.failures import ClusterFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE_IP = "10.88.0.1"
POD_NETWORK = "10.88.0.0/24"
SERVICE_NETWORK = "10.96.0.0/16"
API_IP = "10.96.0.1"
BRIDGE = "cluster0"
CGROUP = "penstock-cluster"
"""The root of all pods' cgroups, in every hierarchy."""
_PREFIX = "penstock-cluster-"
_CGROUPS = Path("/sys/fs/cgroup")
_LEFT_CGROUPS = (CGROUP, "k8s.io")
_ENDING_SECONDS = 5.0
_PRIVATE = ("/run", "/var/lib", "/var/log")
"""Where containerd, the kubelet and the network plugins write whatever they are told."""
_KERNEL = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops")
"""What the kubelet changes of the machine's kernel."""


def isolated(command: list[str]) -> list[str]:
    """The command as process 1 of namespaces of its own; whatever it starts ends with it."""
    unshare = shutil.which("unshare")
    if unshare is None:
        raise ClusterFailed("there is no unshare here (Debian's package util-linux)")
    return [
        *(unshare, "--fork", "--kill-child=KILL"),
        *("--pid", "--mount-proc", "--mount", "--net", "--"),
        *command,
    ]


@contextmanager
def work_folder() -> Iterator[Path]:
    """A folder for one cluster. It is removed at the end, as are those that a killed test left."""
    if not _hierarchies():
        raise ClusterFailed("the test cluster knows cgroups of version 1 only")
    remove_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    folder.chmod(0o755)  # the database runs under another account, which must get there
    (folder / "logs").mkdir()
    kernel = {name: (Path("/proc/sys") / name).read_text() for name in _KERNEL}
    try:
        yield folder
    finally:
        for name, value in kernel.items():
            (Path("/proc/sys") / name).write_text(value)
        remove_leftovers()


def remove_leftovers() -> None:
    """Their processes are gone already: they ended with process 1 of their namespace."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        shutil.rmtree(folder)
    groups = [hierarchy / name for hierarchy in _CGROUPS.iterdir() for name in _LEFT_CGROUPS]
    deadline = time.monotonic() + _ENDING_SECONDS
    while any(group.exists() for group in groups) and time.monotonic() < deadline:
        for group in groups:
            for inner, _, _ in os.walk(group, topdown=False):
                with suppress(OSError):  # a process is not quite gone; or it is somebody else's
                    Path(inner).rmdir()
        time.sleep(0.1)


def prepare() -> None:
    """Within the namespaces, before anything starts."""
    for folder in _PRIVATE:
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    for address in (f"{NODE_IP}/24", f"{API_IP}/32"):
        _run("ip", "address", "add", address, "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")
    for hierarchy in _hierarchies():
        root = hierarchy / CGROUP
        root.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (hierarchy / name).exists():
                (root / name).write_text((hierarchy / name).read_text())


def _hierarchies() -> list[Path]:
    """The kubelet wants its root to be in each of them."""
    return [folder for folder in _CGROUPS.iterdir() if (folder / "cgroup.clone_children").exists()]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterFailed(f"{' '.join(command)}: {done.stderr.strip()}")
