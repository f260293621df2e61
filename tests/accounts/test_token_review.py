"""Against an API server that keeps to the protocol: authentication.k8s.io/v1 TokenReview."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from penstock.accounts.service import ServiceCaller
from penstock.accounts.token_review import REMEMBERED_SECONDS, ReviewSettings, TokenReview
from penstock.kit.errors import Unavailable
from penstock.launchers.kubernetes.api import KubernetesApi
from penstock.launchers.kubernetes.connection import Connection
from tests.accounts.test_oidc import Time
from tests.servers.kubernetes_api import KubernetesServer, Token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

OWN = "the-control-planes-own-token"
SETTINGS = ReviewSettings(
    audience="penstock",
    workers=frozenset({"jobs/penstock-worker"}),
    wrappers=frozenset({"jobs/penstock-graph"}),
)


class ApiServer(KubernetesServer):
    """Knows tokens by name, each for some audiences."""

    def knows(self, token: str, account: str, audiences: list[str], pod: str | None = None) -> str:
        user = f"system:serviceaccount:{account.replace('/', ':')}"
        self.tokens[token] = Token(user=user, audiences=tuple(audiences), pod=pod)
        return token

    @property
    def reviews(self) -> int:
        return len(self.calls_of("create", "tokenreviews"))


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        running.tokens[OWN] = Token(user="system:serviceaccount:penstock:control-plane")
        yield running


@pytest.fixture
def moment() -> Time:
    return Time()


@pytest.fixture
async def review(api: ApiServer, moment: Time) -> AsyncIterator[TokenReview]:
    async with KubernetesApi(Connection(url=api.url, token=OWN)) as client:
        ask = partial(client.review_token, audience=SETTINGS.audience)
        yield TokenReview(ask, SETTINGS, time=moment)


async def test_a_workers_account_makes_a_worker(api: ApiServer, review: TokenReview) -> None:
    token = api.knows("a.worker.token", "jobs/penstock-worker", ["penstock"])
    assert await review.who(token) == ServiceCaller(component="worker")


async def test_a_graph_servers_pod_says_which_instance_is_its(
    api: ApiServer, review: TokenReview
) -> None:
    token = api.knows(
        "a.wrapper.token", "jobs/penstock-graph", ["penstock"], pod="graph-instance-42-x7k2p"
    )
    assert await review.who(token) == ServiceCaller(component="wrapper", instance_id=42)
    for pod in ("graph-instance-", "graph-instance-0", "other-42", "graph-instance-42x", None):
        nameless = api.knows(f"a.wrapper.{pod}", "jobs/penstock-graph", ["penstock"], pod=pod)
        assert await review.who(nameless) is None


async def test_a_token_for_another_audience_or_of_another_account_is_nobodys(
    api: ApiServer, review: TokenReview
) -> None:
    others = [
        api.knows("for.the.apiserver", "jobs/penstock-worker", ["https://kubernetes.default.svc"]),
        api.knows("of.another.account", "jobs/default", ["penstock"]),
        api.knows("of.another.namespace", "evil/penstock-worker", ["penstock"]),
        "not.known.there",
    ]
    for token in others:
        assert await review.who(token) is None


async def test_an_api_server_that_does_not_know_audiences_is_not_believed(
    api: ApiServer, review: TokenReview, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = {"username": "system:serviceaccount:jobs:penstock-worker"}
    monkeypatch.setattr(api, "_reviewed", lambda _spec: {"authenticated": True, "user": user})
    assert await review.who("a.worker.token") is None


async def test_what_was_said_is_remembered_briefly_and_a_refusal_is_not(
    api: ApiServer, review: TokenReview, moment: Time
) -> None:
    assert await review.who("a.worker.token") is None
    token = api.knows("a.worker.token", "jobs/penstock-worker", ["penstock"])
    for _ in range(5):
        assert await review.who(token) is not None
    assert api.reviews == 2
    del api.tokens[token]
    moment.at += REMEMBERED_SECONDS
    assert await review.who(token) is None


async def test_what_cannot_be_a_service_account_token_is_not_asked_about(
    api: ApiServer, review: TokenReview
) -> None:
    for token in ("", "static", "pst_abc", "a." * 9000):
        assert await review.who(token) is None
    assert api.reviews == 0


async def test_an_api_server_that_is_away_is_said_to_be(
    api: ApiServer, review: TokenReview
) -> None:
    await api.close()
    with pytest.raises(Unavailable):
        await review.who("a.worker.token")


async def test_a_control_plane_without_the_right_to_review_says_that_it_cannot(
    api: ApiServer, review: TokenReview
) -> None:
    token = api.knows("a.worker.token", "jobs/penstock-worker", ["penstock"])
    api.rules["system:serviceaccount:penstock:control-plane"] = set()
    with pytest.raises(Unavailable, match="could not review"):
        await review.who(token)


async def test_a_token_that_is_over_is_nobodys(api: ApiServer, review: TokenReview) -> None:
    user = "system:serviceaccount:jobs:penstock-worker"
    api.tokens["an.old.token"] = Token(user=user, audiences=("penstock",), expires=1.0)
    assert await review.who("an.old.token") is None
