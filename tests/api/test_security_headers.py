"""Every response has the security headers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2
import pytest

from penstock.api.serving.server import Server, bind
from penstock.kit.security_headers import DEFAULTS, TRANSPORT
from tests.api.control_plane import ADMIN, OPERATOR, SERVICE

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

STRICT = {name.decode(): value.decode() for name, value in DEFAULTS}
HSTS = TRANSPORT[0].decode()
ASKED = [
    ("GET", "/api/jobs", OPERATOR, 200),
    ("GET", "/api/jobs?limit=0", OPERATOR, 422),
    ("GET", "/api/jobs", "nobody's", 401),
    ("GET", "/api/jobs", None, 401),
    ("POST", "/api/internal/jobs/claim", SERVICE, 401),
    ("GET", "/api/users", ADMIN, 200),
    ("GET", "/api/users", None, 401),
    ("GET", "/api/jobs/1", OPERATOR, 404),
    ("GET", "/no/such/page", None, 404),
    ("DELETE", "/health", None, 405),
    ("OPTIONS", "/api/jobs", None, 405),
    ("HEAD", "/health", None, 405),
    ("GET", "/health", None, 200),
    ("GET", "/ready", None, 200),
    ("GET", "/metrics", OPERATOR, 200),
    ("GET", "/api/openapi.json", None, 200),
    ("GET", "/wrapper/no-such-graph/x", OPERATOR, 404),
]


@pytest.mark.parametrize(("method", "path", "token", "status"), ASKED)
async def test_every_answer_is_strict(
    anyone: httpx2.AsyncClient, method: str, path: str, token: str | None, status: int
) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = await anyone.request(method, path, headers=headers)
    assert answer.status_code == status
    assert STRICT.items() <= dict(answer.headers).items()
    assert HSTS not in answer.headers, "nobody came by TLS"
    for name in STRICT:
        assert len(answer.headers.get_list(name)) == 1, "two would be read in two ways"


async def test_behind_a_proxy_with_tls_browsers_are_told_to_stay_with_it(
    anyone: httpx2.AsyncClient,
) -> None:
    answer = await anyone.get("/health", headers={"X-Forwarded-Proto": "https"})
    assert answer.headers[HSTS] == TRANSPORT[1].decode()


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"\r\nHELLO WORLD\r\n\r\n"]
)
async def test_what_is_no_http_is_refused_as_strictly(url: str, sent: bytes) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    for name, value in DEFAULTS:
        assert answer.count(name + b": " + value + b"\r\n") == 1


async def test_an_application_that_fails_before_it_answers_is_answered_for_as_strictly() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("secret")

    with bind("127.0.0.1", 0) as listener:
        server = Server(failing)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await server.tried.wait()
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        server.should_exit = True
        await task
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "INTERNAL"
    assert STRICT.items() <= dict(answer.headers).items()
    assert "secret" not in answer.text
