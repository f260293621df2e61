"""The objects of one run: a pod, and the service and the secret that it owns.

Pod and service are named after the handle. The secret has a name of its own for each pod, which the
pod's spec says: so an older one never stands in its way, and nobody needs the right to read or to
delete secrets. The API server deletes what a pod owns with it, so ending a run is
one call.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.launchers.contract import Handle
from penstock.launchers.kubernetes.pod import CONTAINER, SECRETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.launchers.contract import LaunchRequest
    from penstock.launchers.kubernetes.pod import Manifest, Pod

APP = "graph-instance"
PORT = 8000
RUN = "penstock.dev/run"
"""The annotation that says whose pod it is; labels are for selectors, and people edit them."""
DATA, SECRETS_DIR, TOKEN_DIR = (
    "/data",
    "/var/run/secrets/penstock",
    "/var/run/secrets/penstock-account",
)
_USER = 10001
_NAME = re.compile(rf"{APP}-([1-9][0-9]{{0,15}})-([1-9][0-9]{{0,8}})")
_LOST_NODE_SECONDS = 60
"""Kubernetes moves pods off a node that does not answer after five minutes; nobody wants to wait
for a graph so long."""
_MIB = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    namespace: str
    installation: str
    image: str
    image_pull: str = "IfNotPresent"
    python: str = "python"
    service_account: str | None = None
    token_audience: str | None = None
    """Set, the pod gets a token of its service account for this audience."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    volume_gb: int = 10
    storage_class: str | None = None
    cpu_request_share: float = 0.25
    drain_seconds: int = 30
    pod_patch: Mapping[str, Any] = field(default_factory=dict)

    @property
    def selector(self) -> str:
        return f"app={APP},app.kubernetes.io/instance={self.installation}"


def name_of(handle: Handle) -> str:
    return f"{APP}-{handle.instance_id}-{handle.launch}"


def handle_of(pod: Pod, settings: PodSettings) -> Handle | None:
    """The run of a pod; None if it is not ours, whatever its labels say."""
    match = _NAME.fullmatch(pod.name)
    if match is None:
        return None
    handle = Handle(instance_id=int(match[1]), launch=int(match[2]))
    return handle if pod.annotations.get(RUN) == _run(handle, settings) else None


def labels(handle: Handle, settings: PodSettings) -> dict[str, str]:
    return {
        "app": APP,
        "app.kubernetes.io/managed-by": "penstock",
        "app.kubernetes.io/instance": settings.installation,
        "instance-id": str(handle.instance_id),
        "launch": str(handle.launch),
    }


def pod(order: LaunchRequest, settings: PodSettings, *, secret_name: str) -> Manifest:
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(order.handle, settings)
        | {
            "annotations": {
                RUN: _run(order.handle, settings),
                "penstock.dev/owner": json.dumps(order.owner),
            }
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": settings.drain_seconds + 15,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(order, settings)],
            "volumes": _volumes(order, settings, secret_name),
            "tolerations": _tolerations(settings),
            **({"nodeSelector": dict(settings.node_selector)} if settings.node_selector else {}),
            **(
                {"serviceAccountName": settings.service_account} if settings.service_account else {}
            ),
        },
    }
    merged: Manifest = _merged(manifest, settings.pod_patch)
    return merged


def service(handle: Handle, settings: PodSettings, owner: Pod) -> Manifest:
    """For operators and older clients; the control plane goes to the pod's address."""
    selector = labels(handle, settings)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(handle, settings, owner),
        "spec": {
            "selector": {
                "app": APP,
                "instance-id": selector["instance-id"],
                "launch": selector["launch"],
            },
            "ports": [{"name": "http", "port": PORT, "targetPort": PORT}],
        },
    }


def secret(order: LaunchRequest, settings: PodSettings, owner: Pod) -> Manifest:
    """Files of PENSTOCK_SECRETS_DIR: nothing of it is in an environment."""
    secrets = {"PENSTOCK_INSTANCE_TOKEN": order.token, **order.secrets}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "immutable": True,
        "metadata": _metadata(order.handle, settings, owner) | {"name": owner.secret},
        "stringData": {name.lower(): value for name, value in secrets.items()},
    }


def resources(cpu_cores: int, memory_bytes: int, settings: PodSettings) -> Manifest:
    """Memory is set aside in full; of cores a share, for queries come in bursts."""
    request = max(1, math.floor(cpu_cores * 1000 * settings.cpu_request_share))
    return {
        "requests": {"cpu": f"{request}m", "memory": str(memory_bytes)},
        "limits": {"cpu": str(cpu_cores), "memory": str(memory_bytes)},
    }


def _metadata(handle: Handle, settings: PodSettings, owner: Pod | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name_of(handle),
        "namespace": settings.namespace,
        "labels": labels(handle, settings),
    }
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ]
    return metadata


def _run(handle: Handle, settings: PodSettings) -> str:
    return f"{settings.installation}/{handle.instance_id}/{handle.launch}"


def _container(order: LaunchRequest, settings: PodSettings) -> Manifest:
    python = [settings.python, "-I", "-m"]
    return {
        "name": CONTAINER,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull,
        "command": [*python, "penstock.graph_server"],
        "env": _environment(order, settings),
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": resources(order.cpu_cores, order.memory_bytes, settings),
        "readinessProbe": {"httpGet": {"path": "/ready", "port": PORT}, "periodSeconds": 5},
        "lifecycle": {
            "preStop": {
                "exec": {
                    "command": [
                        *python,
                        "penstock.graph_server.pre_stop",
                        str(settings.drain_seconds),
                    ]
                }
            }
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "data", "mountPath": DATA},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - in the pod
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - in the pod
            {"name": SECRETS, "mountPath": SECRETS_DIR, "readOnly": True},
            *(
                [{"name": "account", "mountPath": TOKEN_DIR, "readOnly": True}]
                if settings.token_audience
                else []
            ),
        ],
    }


def _environment(order: LaunchRequest, settings: PodSettings) -> list[Manifest]:
    own = {
        "HOME": DATA,
        "TMPDIR": "/tmp",  # noqa: S108 - in the pod
        "PENSTOCK_INSTANCE_ID": str(order.handle.instance_id),
        "PENSTOCK_INSTANCE_BACKEND": order.backend,
        "PENSTOCK_INSTANCE_DIR": f"{DATA}/instance",
        "PENSTOCK_INSTANCE_PORT": str(PORT),
        "PENSTOCK_INSTANCE_MEMORY_BYTES": str(order.memory_bytes),
        "PENSTOCK_INSTANCE_CPU": str(order.cpu_cores),
        "PENSTOCK_SECRETS_DIR": SECRETS_DIR,
        "PENSTOCK_URL": order.control_plane_url,
    }
    if settings.token_audience:
        own["PENSTOCK_INSTANCE_ACCOUNT_TOKEN_FILE"] = f"{TOKEN_DIR}/token"
    values = dict(order.environment) | own
    address: Manifest = {
        "name": "PENSTOCK_INSTANCE_HOST",
        "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
    }
    return [*({"name": name, "value": value} for name, value in values.items()), address]


def _volumes(order: LaunchRequest, settings: PodSettings, secret_name: str) -> list[Manifest]:
    size, shared = f"{settings.volume_gb}Gi", f"{max(64, order.memory_bytes // 2 // _MIB)}Mi"
    data: Manifest = {"name": "data", "emptyDir": {"sizeLimit": size}}
    if settings.storage_class is not None:
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": settings.storage_class,
            "resources": {"requests": {"storage": size}},
        }
        data = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    volumes: list[Manifest] = [
        data,
        {"name": "tmp", "emptyDir": {"sizeLimit": size}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shared}},
        {"name": SECRETS, "secret": {"secretName": secret_name, "defaultMode": 0o440}},
    ]
    if settings.token_audience:
        token = {"path": "token", "audience": settings.token_audience, "expirationSeconds": 3600}
        sources: Manifest = {"sources": [{"serviceAccountToken": token}], "defaultMode": 0o440}
        volumes.append({"name": "account", "projected": sources})
    return volumes


def _tolerations(settings: PodSettings) -> list[Manifest]:
    return [
        *(dict(toleration) for toleration in settings.tolerations),
        *(
            {
                "key": f"node.kubernetes.io/{taint}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": _LOST_NODE_SECONDS,
            }
            for taint in ("not-ready", "unreachable")
        ),
    ]


def _merged(document: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386), with one addition: in a list of named things the items of the
    patch are merged by name, as `kubectl patch` does."""
    if isinstance(patch, dict):
        base = document if isinstance(document, dict) else {}
        merged = {name: value for name, value in base.items() if patch.get(name, value) is not None}
        for name, value in patch.items():
            if value is not None:
                merged[name] = _merged(base.get(name), value)
        return merged
    if isinstance(patch, list) and isinstance(document, list) and _are_named([*patch, *document]):
        changes = {item["name"]: item for item in patch}
        names = {item["name"] for item in document}
        return [
            *(_merged(item, changes.get(item["name"], {})) for item in document),
            *(item for item in patch if item["name"] not in names),
        ]
    return patch


def _are_named(items: Sequence[Any]) -> bool:
    return all(isinstance(item, dict) and "name" in item for item in items)
