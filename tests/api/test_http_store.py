"""A worker's client against a control plane that is absent, broken or foreign."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from penstock.api.serving.server import bind
from penstock.jobs import http_store
from penstock.jobs.http_store import HttpJobStore
from penstock.jobs.model import JobSpec
from penstock.kit.errors import (
    Internal,
    InvalidInput,
    InvalidToken,
    NotFound,
    PermissionDenied,
    Unavailable,
)
from tests.api.control_plane import SERVICE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SPEC = [JobSpec(kind="work")]


@asynccontextmanager
async def answering(raw: bytes | None) -> AsyncIterator[str]:
    """A server that says one thing to everybody and hangs up; with None it says nothing and does
    not."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if raw is None:
            await reader.read()
        else:
            writer.write(raw)
        writer.close()

    server = await asyncio.start_server(answer, sock=bind("127.0.0.1", 0))
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def page(status: str, body: bytes, kind: str = "text/html") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


async def test_nobody_there_is_unavailable() -> None:
    with bind("127.0.0.1", 0) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    async with HttpJobStore(url, SERVICE) as store:
        with pytest.raises(Unavailable) as refused:
            await store.claim("w1", ["default"], 1)
        assert refused.value.retryable
        assert SERVICE not in str(refused.value)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", Unavailable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", Unavailable),
        (b"not http at all\r\n\r\n", Unavailable),
        (page("502 Bad Gateway", b"<h1>nginx</h1>"), Unavailable),
        (page("503 Service Unavailable", b"{}", "application/json"), Unavailable),
        (page("500 Oops", b'{"error": "text"}', "application/json"), Unavailable),
        (page("200 OK", b"<h1>Log in to the wireless network</h1>"), Internal),
        (page("200 OK", b"[]", "application/json"), Internal),
        (page("404 Not Found", b"no such page"), Internal),
    ],
)
async def test_an_answer_that_is_not_ours_is_told_from_one_that_is(
    raw: bytes, kind: type[Exception]
) -> None:
    async with answering(raw) as url, HttpJobStore(url, SERVICE) as store:
        with pytest.raises(kind) as refused:
            await store.enqueue(SPEC)
        assert type(refused.value) is kind


async def test_a_control_plane_that_hangs_is_unavailable_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_store, "BEAT_SECONDS", 0.1)
    from tests.jobs.conformance import beat

    async with answering(None) as url, HttpJobStore(url, SERVICE) as store:
        with pytest.raises(Unavailable):
            await asyncio.wait_for(store.renew(beat()), 5)


async def test_an_error_is_rebuilt_as_it_was_raised(url: str) -> None:
    async with HttpJobStore(url, SERVICE) as store:
        with pytest.raises(NotFound, match="There is no job 999"):
            await store.job(999)
        with pytest.raises(InvalidInput) as refused:
            await store.enqueue([JobSpec(kind="nonsense")])
        assert "work" in str(refused.value.hint)
    async with HttpJobStore(url, "wrong") as store:
        with pytest.raises(InvalidToken):
            await store.enqueue(SPEC)
    async with HttpJobStore(url, SERVICE, component="wrapper") as store:
        with pytest.raises(PermissionDenied):
            await store.enqueue(SPEC)


@pytest.mark.parametrize(
    ("url", "token"),
    [("localhost:8080", SERVICE), ("", SERVICE), ("http://x", ""), ("http://x", "a\nb")],
)
def test_a_store_that_could_never_work_is_refused_at_once(url: str, token: str) -> None:
    with pytest.raises(InvalidInput):
        HttpJobStore(url, token)


def test_a_worker_loads_neither_the_database_nor_the_web_framework() -> None:
    code = (
        "import sys, penstock.jobs.http_store;"
        " print(*sorted(m for m in sys.modules if '.' not in m))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"asyncpg", "fastapi", "starlette", "uvicorn"}.isdisjoint(loaded)
    assert "httpx2" in loaded
