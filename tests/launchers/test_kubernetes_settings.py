"""What the settings of the Kubernetes launcher are refused for, before anything is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.kit.errors import InvalidInput
from penstock.wiring.instances import internal_url
from penstock.wiring.launchers import kubernetes_api, pod_settings, url_for_pods
from penstock.wiring.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


def settings(home: Path, **fields: Any) -> Settings:
    chosen = {"launcher": "kubernetes", "kubernetes_image": "penstock:1"}
    return Settings(home=home, **(chosen | fields))


def test_pods_are_told_the_address_that_leads_out_of_them(tmp_path: Path) -> None:
    named = settings(tmp_path, url="https://penstock.example/", port=8080)
    assert internal_url(named) == "https://penstock.example"
    inside = settings(tmp_path, url="https://p.example", kubernetes_url="http://p.ns.svc:8080")
    assert internal_url(inside) == "http://p.ns.svc:8080"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "needs an address"),
        ({"url": "http://127.0.0.1:8080"}, "do not find the control plane"),
        ({"url": "http://localhost:8080"}, "do not find the control plane"),
    ],
)
def test_an_address_that_pods_cannot_reach_is_refused(
    tmp_path: Path, fields: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        url_for_pods(settings(tmp_path, **fields))


def test_an_image_is_needed(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="needs the image"):
        pod_settings(settings(tmp_path, kubernetes_image=None, url="http://p:1"), "graphs")


def test_without_a_kubeconfig_it_must_run_in_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InvalidInput, match="not in a pod") as refused:
        kubernetes_api(settings(tmp_path))
    assert "PENSTOCK_KUBERNETES_KUBECONFIG" in (refused.value.hint or "")


def test_tokens_of_service_accounts_are_mounted_where_they_are_reviewed(tmp_path: Path) -> None:
    account = {"kubernetes_service_account": "graph-server", "url": "http://p:1"}
    assert pod_settings(settings(tmp_path, **account), "graphs").token_audience is None
    reviewed = settings(tmp_path, **account, token_review_wrappers="graphs/graph-server")
    assert pod_settings(reviewed, "graphs").token_audience == "penstock"
