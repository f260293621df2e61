"""Builds the launcher of graph servers, and the client of Kubernetes, from the settings."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.kit.config import is_loopback
from penstock.kit.errors import InvalidInput
from penstock.launchers.kubernetes.api import KubernetesApi
from penstock.launchers.kubernetes.connection import from_kubeconfig, in_cluster
from penstock.launchers.kubernetes.ending import Patience
from penstock.launchers.kubernetes.launcher import KubernetesLauncher
from penstock.launchers.kubernetes.manifest import PodSettings
from penstock.launchers.subprocess import of_home

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.kit.background import BackgroundHealth
    from penstock.launchers.contract import Launcher
    from penstock.launchers.kubernetes.connection import Connection
    from penstock.wiring.settings import Settings


@asynccontextmanager
async def opened_launcher(
    settings: Settings, health: BackgroundHealth, launcher: Launcher | None = None
) -> AsyncIterator[Launcher]:
    """The launcher of the settings, or the given one, which is somebody else's to close."""
    if launcher is not None:
        yield launcher
    elif settings.launcher == "subprocess":
        yield of_home(settings.home)
    else:
        async with (
            kubernetes_api(settings) as api,
            KubernetesLauncher(
                api,
                pod_settings(settings, api.namespace),
                patience=Patience(schedule_seconds=settings.kubernetes_schedule_seconds),
                health=health,
            ) as pods,
        ):
            yield pods


def kubernetes_api(settings: Settings) -> KubernetesApi:
    return KubernetesApi(kubernetes_connection(settings), settings.kubernetes_namespace)


def kubernetes_connection(settings: Settings) -> Connection:
    file = settings.kubernetes_kubeconfig
    return in_cluster() if file is None else from_kubeconfig(file)


def pod_settings(settings: Settings, namespace: str) -> PodSettings:
    if settings.kubernetes_image is None:
        raise InvalidInput(
            "The Kubernetes launcher needs the image of graph servers.",
            hint="Set PENSTOCK_KUBERNETES_IMAGE.",
        )
    url_for_pods(settings)
    account = settings.kubernetes_service_account
    reviewed = account is not None and settings.token_review_wrappers is not None
    return PodSettings(
        namespace=namespace,
        installation=settings.kubernetes_installation,
        image=settings.kubernetes_image,
        image_pull=settings.kubernetes_image_pull,
        python=settings.kubernetes_python,
        service_account=account,
        token_audience=settings.token_review_audience if reviewed else None,
        node_selector=settings.kubernetes_node_selector,
        tolerations=settings.kubernetes_tolerations,
        volume_gb=settings.kubernetes_volume_gb,
        storage_class=settings.kubernetes_storage_class,
        cpu_request_share=settings.kubernetes_cpu_request_share,
        drain_seconds=settings.kubernetes_drain_seconds,
        pod_patch=settings.kubernetes_pod_patch,
    )


def url_for_pods(settings: Settings) -> str:
    url = settings.kubernetes_url or settings.url
    if url is None:
        raise InvalidInput(
            "The Kubernetes launcher needs an address at which pods find the control plane.",
            hint="Set PENSTOCK_KUBERNETES_URL, such as http://penstock.penstock.svc:8080.",
        )
    if settings.kubernetes_url is None and is_loopback(urlsplit(url).hostname or ""):
        raise InvalidInput(
            f"Pods do not find the control plane at {url}, which is an address of this machine.",
            hint="Set PENSTOCK_KUBERNETES_URL to one that leads to it from pods.",
        )
    return url.rstrip("/")
