"""Against an API server of our own that keeps to the protocol: authentication.k8s.io/v1
TokenReview."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from penstock.accounts.service import ServiceCaller
from penstock.accounts.token_review import REMEMBERED_SECONDS, ReviewSettings, TokenReview
from penstock.api.server import Server, bind
from penstock.kit.errors import Unavailable
from tests.accounts.test_oidc import Time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

OWN = "the-control-planes-own-token"
SETTINGS = ReviewSettings(
    audience="penstock",
    workers=frozenset({"jobs/penstock-worker"}),
    wrappers=frozenset({"jobs/penstock-graph"}),
)
POD = "authentication.kubernetes.io/pod-name"


class ApiServer:
    """Knows tokens by name, each for some audiences; answers 201 with the review's status, as the
    real one does."""

    def __init__(self) -> None:
        self.url = ""
        self.reviews = 0
        self.down = False
        self.tokens: dict[str, tuple[str, list[str], dict[str, list[str]]]] = {}

    def knows(self, token: str, account: str, audiences: list[str], pod: str | None = None) -> str:
        self.tokens[token] = (account, audiences, {} if pod is None else {POD: [pod]})
        return token

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ApiServer]:
        listener = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = Server(self)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await server.tried.wait()
        try:
            yield self
        finally:
            server.should_exit = True
            await task

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        status, answer = self._answer(scope, body)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    def _answer(self, scope: Scope, body: bytes) -> tuple[int, dict[str, Any]]:
        if self.down:
            return 503, {"kind": "Status", "status": "Failure"}
        if dict(scope["headers"]).get(b"authorization") != f"Bearer {OWN}".encode():
            return 401, {"kind": "Status", "status": "Failure", "reason": "Unauthorized"}
        if (scope["method"], scope["path"]) != (
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
        ):
            return 404, {"kind": "Status", "status": "Failure", "reason": "NotFound"}
        review = json.loads(body)
        assert (review["apiVersion"], review["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
        self.reviews += 1
        return 201, review | {"status": self._status(review["spec"])}

    def _status(self, spec: dict[str, Any]) -> dict[str, Any]:
        account, audiences, extra = self.tokens.get(spec["token"], ("", [], {}))
        shared = [audience for audience in spec["audiences"] if audience in audiences]
        if not shared:
            return {"authenticated": False, "error": "token audiences or signature do not match"}
        namespace, name = account.split("/")
        user = {
            "username": f"system:serviceaccount:{namespace}:{name}",
            "uid": "7f3c",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "extra": extra,
        }
        return {"authenticated": True, "user": user, "audiences": shared}


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with ApiServer().running() as running:
        yield running


@pytest.fixture
def moment() -> Time:
    return Time()


@pytest.fixture
async def review(api: ApiServer, moment: Time) -> AsyncIterator[TokenReview]:
    async with httpx2.AsyncClient(base_url=api.url, trust_env=False) as http:
        yield TokenReview(http, SETTINGS, own_token=lambda: OWN, time=moment)


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
    monkeypatch.setattr(api, "_status", lambda _spec: {"authenticated": True, "user": user})
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
    api.down = True
    with pytest.raises(Unavailable):
        await review.who("a.worker.token")
