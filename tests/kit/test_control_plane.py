"""The base of the clients of workers and graph servers."""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING

import pytest

from penstock.graph_server.control_plane.client import InstanceControlPlane
from penstock.jobs.http_store import HttpJobStore
from penstock.kit.backoff import Backoff
from penstock.kit.control_plane import ControlPlaneHttp
from penstock.kit.errors import Internal, InvalidInput, ResourceLocked, Unavailable
from penstock.kit.watched_file import WatchedFile
from tests.servers.http import HttpServer, Request, Response, as_json

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "a-token-of-the-test"


def client(url: str) -> ControlPlaneHttp:
    return ControlPlaneHttp(url, TOKEN, component="worker", path="jobs", answer_seconds=5)


async def call(answer: Response) -> object:
    async def serve(_: Request) -> Response:
        return answer

    async with HttpServer(serve) as server, client(f"http://127.0.0.1:{server.port}") as http:
        return await http._call("GET", "/1")


async def test_the_answer_is_what_its_envelope_holds() -> None:
    assert await call(as_json({"data": [1]})) == [1]
    assert await call(Response(status=204)) is None


async def test_an_error_with_a_hint_is_the_error_that_the_control_plane_raised() -> None:
    envelope = {
        "error": {
            "code": ResourceLocked.code,
            "message": "Job 7 has the lock.",
            "details": {"hint": "Wait for it.", "holder": 7},
        }
    }
    with pytest.raises(ResourceLocked, match="Job 7") as caught:
        await call(as_json(envelope, status=409))
    assert caught.value.hint == "Wait for it."
    assert caught.value.details["holder"] == 7


@pytest.mark.parametrize(("status", "error"), [(502, Unavailable), (404, Internal)])
async def test_an_answer_of_another_server_is_told_apart(
    status: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match=str(status)):
        await call(Response(status=status, body=b"<html>"))


async def test_a_server_that_is_away_is_unavailable() -> None:
    with socket.socket() as not_listening:
        not_listening.bind(("127.0.0.1", 0))
        async with client(f"http://127.0.0.1:{not_listening.getsockname()[1]}") as http:
            with pytest.raises(Unavailable, match="does not answer"):
                await http._call("GET", "/1")


async def test_a_token_that_is_being_replaced_is_unavailable_and_the_next_one_is_shown(
    tmp_path: Path,
) -> None:
    shown: list[str] = []

    async def serve(request: Request) -> Response:
        shown.append(request.headers["authorization"])
        return as_json({"data": None})

    file = tmp_path / "token"
    file.write_text("first")
    async with HttpServer(serve) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with HttpJobStore(url, WatchedFile(file).read) as store:
            file.write_text("")
            with pytest.raises(Unavailable, match="empty"):
                await store._call("GET", "/1")
            file.unlink()
            with pytest.raises(Unavailable, match="cannot be read"):
                await store._call("GET", "/1")
            file.write_text("second")
            await store._call("GET", "/1")
    assert shown == ["Bearer second"]


@pytest.mark.parametrize("kind", [HttpJobStore, lambda url, t: InstanceControlPlane(url, t, 1)])
@pytest.mark.parametrize(
    ("url", "token"), [("ftp://x", TOKEN), ("http://x", ""), ("http://x", "ä")]
)
def test_an_address_or_token_that_cannot_be_is_refused(
    kind: type[HttpJobStore], url: str, token: str
) -> None:
    with pytest.raises(InvalidInput):
        kind(url, token)


def test_a_pause_never_leaves_its_bounds_however_many_tries_there_were() -> None:
    backoff = Backoff(base=1, factor=3, cap=60, least=0.5, most=1.0)
    pauses = [backoff.pause(n, random.Random(n)) for n in (0, 1, 2, 10, 10_000)]
    assert all(0.5 <= pause <= 60 for pause in pauses)
    assert pauses[0] <= 1
    assert pauses[-1] >= 30
