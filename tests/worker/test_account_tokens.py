"""A worker that shows a projected token of its service account instead of the service token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.control_plane import client_factory
from penstock.jobs.http_store import HttpJobStore
from penstock.kit.errors import AuthenticationRequired, InvalidInput
from penstock.wiring.settings import Settings
from tests.graphs.deployment import running_deployment, settings
from tests.servers.kubernetes_api import KubernetesServer, Token

if TYPE_CHECKING:
    from pathlib import Path

WORKER = Token(user="system:serviceaccount:penstock:worker", audiences=("penstock",))


def kubeconfig(folder: Path, url: str) -> Path:
    file = folder / "kubeconfig"
    config = {
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "admin"}}],
    }
    file.write_text(json.dumps(config))
    return file


async def test_a_worker_is_known_by_its_account_and_goes_on_with_the_next_token(
    database: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    async with KubernetesServer() as server:
        config = settings(
            tmp_path / "home",
            token_review_workers="penstock/worker",
            kubernetes_kubeconfig=kubeconfig(tmp_path, server.url),
        )
        async with running_deployment(database, config) as deployment:
            own = Settings(
                home=tmp_path / "worker", url=deployment.settings.url, service_token_file=file
            )
            server.tokens["the.first.token"] = WORKER
            file.write_text("the.first.token")
            async with client_factory(own, HttpJobStore)() as store:
                assert await store.claim("w", ["export"], 1) == []
                del server.tokens["the.first.token"]
                server.tokens["the.second.token"] = WORKER
                file.write_text("the.second.token")
                assert await store.claim("w", ["export"], 1) == []
                assert len(server.calls_of("create", "tokenreviews")) == 2
                file.write_text("of.nobody.known")
                with pytest.raises(AuthenticationRequired):
                    await store.claim("w", ["export"], 1)


def test_a_token_file_that_is_missing_is_named(tmp_path: Path) -> None:
    own = Settings(home=tmp_path, url="http://c:1", service_token_file=tmp_path / "none")
    with pytest.raises(InvalidInput, match="none cannot be read"):
        client_factory(own, HttpJobStore)()
