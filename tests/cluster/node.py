"""The one node: containerd and the kubelet."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from tests.cluster.control_plane import NODE
from tests.cluster.failures import ClusterFailed
from tests.cluster.machine import BRIDGE, CGROUP, NODE_IP, POD_NETWORK
from tests.cluster.program import Program
from tests.deploy import image

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane

PAUSE = "localhost/pause:1"
_CONTAINERD = """\
version = 2
root = "{work}/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{work}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE the kernel refuses a negative score, and runc gives up.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{root}/usr/lib/cni"
    conf_dir = "{work}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "{root}/usr/sbin/runc"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    containerd: Program
    kubelet: Program
    ctr: tuple[str, ...]
    work: Path
    pause: Path
    """The program that holds a pod's network open."""

    def start(self) -> None:
        self.containerd.start()
        self.load(_pause_image(self.pause, self.work))
        self.kubelet.start()

    def load(self, archive: Path) -> None:
        """An image in an archive becomes known to the kubelet."""
        command = [*self.ctr, "-n", "k8s.io", "images", "import", str(archive)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ClusterFailed(f"{archive.name} cannot be imported: {done.stderr.strip()[-500:]}")


def node(
    work: Path, *, programs: Path, packages: Path, control_plane: ControlPlane, resolver: str
) -> Node:
    """Not started yet; the address of what resolves names for pods."""
    socket, kubectl = work / "containerd.sock", control_plane.kubectl
    ctr = (str(packages / "usr/bin/ctr"), "--address", str(socket))
    config = _CONTAINERD.format(work=work, socket=socket, pause=PAUSE, root=packages)
    (work / "containerd.toml").write_text(config)
    _write_network(work)
    path = {"PATH": f"{packages}/usr/bin:{packages}/usr/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}

    def answers() -> bool:
        return subprocess.run([*ctr, "version"], capture_output=True, check=False).returncode == 0

    def ready() -> bool:
        if not kubectl.works("get", "node", NODE):
            return False
        conditions = kubectl.get("node", NODE)["status"].get("conditions", ())
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    return Node(
        containerd=Program(
            name="containerd",
            command=[str(packages / "usr/bin/containerd"), "-c", str(work / "containerd.toml")],
            logs=work / "logs",
            healthy=answers,
            environment=path,
        ),
        kubelet=Program(
            name="kubelet",
            command=_kubelet(work, programs, control_plane, f"unix://{socket}", resolver),
            logs=work / "logs",
            healthy=ready,
            environment=path,
        ),
        ctr=ctr,
        work=work,
        pause=programs / "pause",
    )


def _write_network(work: Path) -> None:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": POD_NETWORK}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": str(work / "addresses"),
    }
    bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipam": addresses}
    document = {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}
    (work / "cni").mkdir()
    (work / "cni" / "10-pods.conflist").write_text(json.dumps(document))


def _kubelet(
    work: Path, programs: Path, control_plane: ControlPlane, runtime: str, resolver: str
) -> list[str]:
    pair, config = control_plane.user("kubelet", f"system:node:{NODE}", "system:nodes")
    (work / "resolv.conf").write_text("")
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_IP,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(control_plane.authority.pair.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "clusterDNS": [resolver],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": runtime,
        # A test machine's disk may be nearly full.
        "evictionHard": {
            "memory.available": "200Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        "failCgroupV1": False,
        "failSwapOn": False,
        # Never: containerd 1.6 pins no images, so the collector would take that of `pause`.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "podLogsDir": str(work / "logs" / "pods"),
        "resolvConf": str(work / "resolv.conf"),
        "tlsCertFile": str(pair.certificate),
        "tlsPrivateKeyFile": str(pair.key),
    }
    (work / "kubelet.yaml").write_text(yaml.safe_dump(settings))
    return [
        str(programs / "kubelet"),
        f"--kubeconfig={config}",
        f"--config={work / 'kubelet.yaml'}",
        f"--root-dir={work / 'kubelet'}",
        f"--hostname-override={NODE}",
        f"--node-ip={NODE_IP}",
    ]


def _pause_image(program: Path, work: Path) -> Path:
    root, scratch = work / "pause", work / "pause-layers"
    (root / "tmp").mkdir(parents=True)
    scratch.mkdir()
    (root / "pause").write_bytes(program.read_bytes())
    (root / "pause").chmod(0o755)
    builder = image.builder()
    layer = builder.pack(root, scratch / "layer.tar.gz", 1)
    builder.write_image(work / "pause.tar", PAUSE, "/pause", [layer], scratch)
    return work / "pause.tar"
