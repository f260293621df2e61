"""Settings of launchers: where graph servers run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from penstock.kit.config import Section


class LauncherSettings(Section):
    """Processes of this machine, or pods of a Kubernetes cluster."""

    launcher: Literal["subprocess", "kubernetes"] = Field(
        "subprocess",
        description="Where graph servers run: as processes of the control plane's machine, or each"
        " in a pod of its own.",
    )
    worker_pods: str | None = Field(
        None,
        description="Labels of the pods of workers in the control plane's namespace, such as"
        " app.kubernetes.io/component=worker: those with claimed jobs get a higher deletion cost,"
        " so that scaling in removes idle ones first. Workers are named after their pods.",
    )
    kubernetes_namespace: str | None = Field(
        None,
        description="Namespace of the pods of graph servers; unset means the one of the control"
        " plane's own pod, or of the kubeconfig.",
    )
    kubernetes_image: str | None = Field(
        None, description="Image of graph servers: Penstock with the extra `graph`."
    )
    kubernetes_image_pull: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="When nodes pull that image."
    )
    kubernetes_python: str = Field("python", description="The Python of that image.")
    kubernetes_url: str | None = Field(
        None,
        description="Where pods find the control plane, such as http://penstock.penstock.svc:8080;"
        " unset means `url`.",
    )
    kubernetes_installation: Annotated[
        str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")
    ] = Field(
        "penstock",
        description="Label app.kubernetes.io/instance of the pods: installations that share a"
        " namespace need different ones.",
    )
    kubernetes_kubeconfig: Path | None = Field(
        None,
        description="A kubeconfig file; unset means the service account of the control plane's own"
        " pod.",
    )
    kubernetes_service_account: str | None = Field(
        None,
        description="Service account of the pods of graph servers. With `token_review_wrappers`"
        " they call the control plane with its token.",
    )
    kubernetes_node_selector: dict[str, str] = Field(
        default_factory=dict, description="Labels of the nodes that graph servers may run on."
    )
    kubernetes_tolerations: list[dict[str, str | int]] = Field(
        default_factory=list, description="Taints that pods of graph servers tolerate."
    )
    kubernetes_volume_gb: Annotated[int, Field(ge=1, le=100_000)] = Field(
        10, description="Disk of a graph server."
    )
    kubernetes_storage_class: str | None = Field(
        None,
        description="Storage class of that disk, a generic ephemeral volume; unset means the"
        " node's own disk (emptyDir).",
    )
    kubernetes_cpu_request_share: Annotated[float, Field(gt=0, le=1)] = Field(
        0.25,
        description="Share of an instance's cores that its pod requests; it may use all of them"
        " while the node has some to spare.",
    )
    kubernetes_schedule_seconds: Annotated[int, Field(ge=1, le=540)] = Field(
        300,
        description="How long an instance waits for a node with room; an autoscaler needs some"
        " minutes.",
    )
    kubernetes_drain_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        30,
        description="How long a graph server whose pod is deleted may go on with an algorithm and"
        " with queries; the pod's grace is 15 seconds longer.",
    )
    kubernetes_pod_patch: dict[str, Any] = Field(
        default_factory=dict,
        description="Merged into the pods of graph servers, lists of named things by name:"
        ' {"spec": {"priorityClassName": "high"}}.',
    )
