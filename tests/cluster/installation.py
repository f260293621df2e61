"""Penstock on the cluster, by its chart and with real images."""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

import penstock
from tests.cluster.failures import ClusterFailed
from tests.cluster.machine import POD_NETWORK
from tests.deploy.chart import CHART
from tests.deploy.cluster_schemas import helm

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.kubectl import Kubectl
    from tests.cluster.outside import Outside

NAMESPACE = "penstock"
_ROLE = "keda"
_TIMEOUT = "5m"
_SMALL = {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}}
"""The machine has two cores, and runs the control plane of Kubernetes as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    kubectl: Kubectl
    operator_token: str
    seconds: float
    """How long `helm install --wait` took."""

    def pods(self, **labels: str) -> list[dict[str, Any]]:
        """Those that are not on their way out."""
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        pods = self.kubectl.get("pods", "-n", NAMESPACE, "-l", selector)
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def ready(self, component: str, **labels: str) -> list[dict[str, Any]]:
        return [
            pod
            for pod in self.pods(**{"app.kubernetes.io/component": component, **labels})
            if any(
                one["type"] == "Ready" and one["status"] == "True"
                for one in pod["status"].get("conditions", ())
            )
        ]

    def url(self) -> str:
        """A control plane, at its pod's address: there is no Ingress."""
        pods = self.ready("control-plane")
        if not pods:
            raise ClusterFailed("no control plane is ready")
        return f"http://{pods[0]['status']['podIP']}:8080"

    def client(self) -> penstock.Client:
        return penstock.Client(self.url(), self.operator_token)


def install(work: Path, kubectl: Kubectl, outside: Outside) -> Installation:
    """`helm install --wait`, with what the guide says to make before."""
    token, password = secrets.token_hex(24), secrets.token_hex(16)
    kubectl("create", "namespace", NAMESPACE)
    kubectl.apply(*_secrets(outside, token, password))
    values = work / "values.yaml"
    values.write_text(yaml.safe_dump(_values(outside)))
    started = time.monotonic()
    _helm(
        *("install", "penstock", str(CHART), "--namespace", NAMESPACE, "--values", str(values)),
        *("--wait", "--timeout", _TIMEOUT),
        kubectl=kubectl,
        home=work / "helm",
    )
    return Installation(kubectl=kubectl, operator_token=token, seconds=time.monotonic() - started)


def _helm(*arguments: str, kubectl: Kubectl, home: Path) -> None:
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubectl.kubeconfig),
        "HELM_CACHE_HOME": str(home),
        "HELM_CONFIG_HOME": str(home),
        "HELM_DATA_HOME": str(home),
    }
    done = subprocess.run(
        [str(helm()), *arguments], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode != 0:
        raise ClusterFailed(f"helm {arguments[0]}: {done.stderr.strip()[-1000:]}")


def _secrets(outside: Outside, token: str, password: str) -> list[dict[str, Any]]:
    scaling = outside.dsn("penstock", _ROLE, password)
    lake = {
        "type": "sql",
        "warehouse": f"s3://{outside.storage.bucket}/lake",
        "s3.endpoint": outside.storage.endpoint,
        "s3.access-key-id": outside.storage.access_key,
        "s3.secret-access-key": outside.storage.secret_key,
        "s3.region": "us-east-1",
    }
    contents = {
        "penstock-control-plane": {
            "penstock_database_url": outside.dsn("penstock"),
            "penstock_secret_key": base64.b64encode(secrets.token_bytes(32)).decode(),
            "penstock_operator_token": token,
        },
        "penstock-shared": {
            "penstock_catalogs": json.dumps({"lake": lake}),
            "penstock_service_token": secrets.token_hex(24),
            "penstock_storage_access_key_id": outside.storage.access_key,
            "penstock_storage_secret_access_key": outside.storage.secret_key,
        },
        "penstock-scaling": {"password": password, "url": f"{scaling}?sslmode=disable"},
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": data,
        }
        for name, data in contents.items()
    ]


def _values(outside: Outside) -> dict[str, Any]:
    """As in the guide, and smaller; without KEDA."""
    return {
        "settings": {
            "PENSTOCK_STORAGE_URL": f"s3://{outside.storage.bucket}/penstock",
            "PENSTOCK_STORAGE_ENDPOINT": outside.storage.endpoint,
            "PENSTOCK_STORAGE_ALLOW_HTTP": "true",
            "PENSTOCK_OUTBOUND_ALLOW": POD_NETWORK,
        },
        "migrations": {"scalingRole": _ROLE},
        "controlPlane": {"resources": _SMALL},
        "launcher": {
            "settings": {
                "PENSTOCK_KUBERNETES_VOLUME_GB": 1,
                "PENSTOCK_KUBERNETES_CPU_REQUEST_SHARE": 0.05,
            }
        },
        "workerDefaults": {"graceSeconds": 20, "resources": _SMALL},
        "workers": {"match": {"resources": _SMALL}},
        "maintenance": {"resources": _SMALL},
    }
