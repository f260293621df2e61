"""etcd, the API server, the controllers and the scheduler of Kubernetes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2

from tests.cluster.certificates import Authority, Pair, kubeconfig, signing_key
from tests.cluster.kubectl import Kubectl
from tests.cluster.machine import API_IP, NODE_IP, SERVICE_NETWORK
from tests.cluster.program import Program, listens

if TYPE_CHECKING:
    from pathlib import Path

_ETCD, _ETCD_PEERS = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
API = f"https://{API_IP}:443"
NODE = "node1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    etcd: Program
    api_server: Program
    controllers: Program
    scheduler: Program
    authority: Authority
    front: Authority
    kubectl: Kubectl
    folder: Path
    """Of certificates, keys and kubeconfigs."""

    def start(self) -> None:
        for program in (self.etcd, self.api_server, self.controllers, self.scheduler):
            program.start()

    def user(self, name: str, common_name: str, *groups: str) -> tuple[Pair, Path]:
        """Certificate and kubeconfig of a user; the same for a server at this side's addresses."""
        pair = self.authority.issue(
            name,
            common_name,
            groups=groups,
            hosts=["localhost", NODE],
            addresses=["127.0.0.1", NODE_IP],
        )
        return pair, kubeconfig(self.folder / f"{name}.kubeconfig", pair, self.authority, API)


def control_plane(work: Path, programs: Path) -> ControlPlane:
    """Not started yet."""
    folder, logs = work / "keys", work / "logs"
    folder.mkdir()
    authority, front = Authority(folder, "cluster"), Authority(folder, "front")
    admin = authority.issue("admin", "admin", groups=["system:masters"])
    config = kubeconfig(folder / "admin.kubeconfig", admin, authority, API)
    kubectl = Kubectl(program=programs / "kubectl", kubeconfig=config)
    account_key, account_public = signing_key(folder)
    return ControlPlane(
        etcd=_etcd(work, programs),
        api_server=Program(
            name="kube-apiserver",
            command=_api_server(folder, programs, authority, front, account_key, account_public),
            logs=logs,
            healthy=lambda: kubectl.works("get", "--raw", "/readyz"),
        ),
        controllers=Program(
            name="kube-controller-manager",
            command=_controllers(folder, programs, authority, account_key),
            logs=logs,
            # The first thing that the controllers do for everybody.
            healthy=lambda: kubectl.works("get", "serviceaccount", "default"),
        ),
        scheduler=Program(
            name="kube-scheduler",
            command=_scheduler(folder, programs, authority),
            logs=logs,
            healthy=lambda: listens(10259),
        ),
        authority=authority,
        front=front,
        kubectl=kubectl,
        folder=folder,
    )


def _etcd(work: Path, programs: Path) -> Program:
    def healthy() -> bool:
        with suppress(httpx2.TransportError):
            return httpx2.get(f"{_ETCD}/health", timeout=2).is_success
        return False

    command = [
        *(str(programs / "etcd"), "--name=test", f"--data-dir={work / 'etcd'}"),
        *(f"--listen-client-urls={_ETCD}", f"--advertise-client-urls={_ETCD}"),
        *(f"--listen-peer-urls={_ETCD_PEERS}", f"--initial-advertise-peer-urls={_ETCD_PEERS}"),
        *(f"--initial-cluster=test={_ETCD_PEERS}", "--unsafe-no-fsync", "--log-level=warn"),
    ]
    return Program(name="etcd", command=command, logs=work / "logs", healthy=healthy)


def _api_server(
    folder: Path,
    programs: Path,
    authority: Authority,
    front: Authority,
    account_key: Path,
    account_public: Path,
) -> list[str]:
    server = authority.issue(
        "kube-apiserver",
        "kube-apiserver",
        hosts=["localhost", "kubernetes.default.svc"],
        addresses=["127.0.0.1", API_IP, NODE_IP],
    )
    to_kubelets = authority.issue("to-kubelets", "kube-apiserver", groups=["system:masters"])
    aggregator = front.issue("aggregator", "aggregator")
    return [
        str(programs / "kube-apiserver"),
        f"--etcd-servers={_ETCD}",
        # At the address of the service `kubernetes`, and at its port.
        *("--bind-address=0.0.0.0", "--secure-port=443", f"--advertise-address={NODE_IP}"),
        *("--endpoint-reconciler-type=none", f"--service-cluster-ip-range={SERVICE_NETWORK}"),
        "--authorization-mode=Node,RBAC",
        f"--client-ca-file={authority.pair.certificate}",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={account_public}",
        f"--service-account-signing-key-file={account_key}",
        f"--kubelet-client-certificate={to_kubelets.certificate}",
        f"--kubelet-client-key={to_kubelets.key}",
        f"--kubelet-certificate-authority={authority.pair.certificate}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={front.pair.certificate}",
        "--requestheader-allowed-names=aggregator",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={aggregator.certificate}",
        f"--proxy-client-key-file={aggregator.key}",
        "--enable-aggregator-routing=false",
    ]


def _controllers(
    folder: Path, programs: Path, authority: Authority, account_key: Path
) -> list[str]:
    name = "kube-controller-manager"
    pair = authority.issue(name, f"system:{name}")
    config = kubeconfig(folder / f"{name}.kubeconfig", pair, authority, API)
    return [
        str(programs / name),
        *_as(config),
        f"--service-account-private-key-file={account_key}",
        f"--root-ca-file={authority.pair.certificate}",
        f"--cluster-signing-cert-file={authority.pair.certificate}",
        f"--cluster-signing-key-file={authority.pair.key}",
        "--use-service-account-credentials",
        # A test cannot wait five minutes for each step down.
        "--horizontal-pod-autoscaler-sync-period=3s",
        "--horizontal-pod-autoscaler-downscale-stabilization=15s",
    ]


def _scheduler(folder: Path, programs: Path, authority: Authority) -> list[str]:
    name = "kube-scheduler"
    pair = authority.issue(name, f"system:{name}")
    config = kubeconfig(folder / f"{name}.kubeconfig", pair, authority, API)
    return [str(programs / name), *_as(config)]


def _as(config: Path) -> list[str]:
    return [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ]
