"""The one way to a graph server: what passes, what does not, and that nobody gets around it."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx2
import pytest

from penstock.accounts.role import Role
from penstock.kit.security_headers import POLICY
from tests.graphs.deployment import until
from tests.graphs.fleet import sailing, sink
from tests.servers.graph_server import CHUNK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.kit.postgres import Cluster
    from tests.graphs.fleet import Fleet

NAME = "proxied"


@pytest.fixture(scope="module")
async def fleet(
    pg: Cluster, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Fleet]:
    """One control plane for all of these tests, for none of them changes it."""
    connection = await asyncpg.connect(pg.dsn("postgres"))
    await connection.execute(f"CREATE DATABASE {NAME} TEMPLATE {template}")
    async with sailing(pg.dsn(NAME), tmp_path_factory.mktemp("proxy") / "home") as it:
        yield it
        await sink(it.launcher)
    await connection.execute(f"DROP DATABASE {NAME} WITH (FORCE)")
    await connection.close()


@pytest.fixture(scope="module")
async def server(fleet: Fleet) -> dict[str, Any]:
    instance: dict[str, Any] = await fleet.running()
    return instance


async def counters(fleet: Fleet, server: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = (await fleet.through(server, "/told")).json()
    return answer


def raw(fleet: Fleet, text: bytes, *, within: float = 10.0) -> bytes:
    """What the control plane answers to these very bytes."""
    with socket.create_connection(("127.0.0.1", fleet.settings.port), timeout=within) as wire:
        wire.sendall(text)
        answer = b""
        while piece := wire.recv(65536):
            answer += piece
        return answer


async def test_a_request_passes_with_what_we_know_of_its_caller_and_nothing_that_it_claims(
    fleet: Fleet, server: dict[str, Any]
) -> None:
    claims = {
        "X-Penstock-User": "root",
        "x-penstock-role": "ops",
        "X_Penstock_Write": "1",
        "X-Username": "root",
        "X-User-Role": "ops",
        "X-Forwarded-For": "10.0.0.1",
        "Cookie": "session=1",
        "Keep-Alive": "1",
        "TE": "trailers",
        "Connection": "close, X-Named",
        "X-Named": "here only",
        "X-Mine": "kept",
        "Accept": "text/plain",
    }
    seen = (await fleet.through(server, "/a/b?x=1&y=%2F", who="bob", headers=claims)).json()
    headers = [(name.lower(), value) for name, value in seen["headers"]]
    assert len({name for name, _ in headers}) == len(headers), "no header is there twice"
    assert dict(headers) == {
        "host": "instance",
        "authorization": f"Bearer {fleet.instances.token_of(server['id'])}",
        "x-penstock-user": "bob",
        "x-penstock-role": "analyst",
        "x-penstock-write": "0",
        "x-request-id": dict(headers)["x-request-id"],
        "content-length": "0",
        "x-mine": "kept",
        "accept": "text/plain",
        "accept-encoding": dict(headers)["accept-encoding"],
        "user-agent": dict(headers)["user-agent"],
    }
    assert (seen["path"], seen["query"]) == ("/a/b", "x=1&y=%2F")


@pytest.mark.parametrize(
    ("who", "writes"), [("ada", "1"), ("bob", "0"), ("eve", "1"), ("olga", "1")]
)
async def test_owners_admins_and_operators_may_write(
    fleet: Fleet, server: dict[str, Any], who: str, writes: str
) -> None:
    seen = (await fleet.through(server, "/x", who=who, method="POST", json={})).json()
    assert dict(seen["headers"])["x-penstock-write"] == writes
    assert dict(seen["headers"])["x-penstock-user"] == who


async def test_nobody_passes_without_a_credential_and_an_unknown_instance_is_not_found(
    fleet: Fleet, server: dict[str, Any]
) -> None:
    assert (await fleet.http.get(f"/wrapper/{server['url_slug']}/health")).status_code == 401
    assert (await fleet.through(server, "/health", who="stranger")).status_code == 401
    for slug in ("0" * 24, "x", "Bad_Slug", "a" * 81):
        answer = await fleet.through({"url_slug": slug}, "/health")
        assert answer.status_code in (404, 422), slug
        assert "error" in answer.json()
    answer = await fleet.through(server, "/health", method="OPTIONS")
    assert answer.status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../api/jobs",
        "/a/../../b",
        "/a/./b",
        "/a/..",
        "/%2e%2e/b",
        "/a%2fb",
        "/a%2Fb",
        "/a%5cb",
        "/a\\b",
        "/a%00b",
        "/a%252fb",
        "//shutdown",
        "/a//b",
        "/a%zzb",
        "/a b",
        "/a\x01b",
    ],
)
async def test_a_path_that_could_be_read_in_two_ways_is_not_passed_on(
    fleet: Fleet, server: dict[str, Any], path: str
) -> None:
    text = (
        f"GET /wrapper/{server['url_slug']}{path} HTTP/1.1\r\n"
        "Host: x\r\nAuthorization: Bearer ada\r\n"
    )
    answer = await asyncio.to_thread(raw, fleet, f"{text}Connection: close\r\n\r\n".encode())
    status = int(answer.split(b" ", 2)[1])
    assert status in (400, 404, 422), answer
    assert b'"path":' not in answer, "it reached the server"


@pytest.mark.parametrize(
    "path", ["/shutdown", "/Shutdown", "/%73hutdown", "/shutdown/", "/shutdown/x", "/shutdown?x=1"]
)
async def test_a_server_is_not_shut_down_through_the_proxy(
    fleet: Fleet, server: dict[str, Any], path: str
) -> None:
    answer = await fleet.through(server, path, method="POST", who="olga", json={"reason": "mine"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Content-Length: +5",
        "Content-Length: 5, 5",
        "X-A: b\r\n Content-Length: 50",
        "X-A: b\nX-Penstock-User: root",
    ],
)
async def test_a_body_that_could_end_in_two_places_never_makes_a_second_request(
    fleet: Fleet, server: dict[str, Any], headers: str
) -> None:
    hidden = (
        f"GET /wrapper/{server['url_slug']}/smuggled HTTP/1.1\r\n"
        "Host: x\r\nAuthorization: Bearer ada\r\n\r\n"
    )
    head = (
        f"POST /wrapper/{server['url_slug']}/seen HTTP/1.1\r\n"
        f"Host: x\r\nAuthorization: Bearer ada\r\n{headers}\r\n"
    )
    text = f"{head}Connection: close\r\n\r\n0\r\n\r\n{hidden}".encode()
    try:
        answer = await asyncio.to_thread(raw, fleet, text, within=3.0)
    except TimeoutError:
        return  # it waits for the rest of the one body that it sees
    assert b"/smuggled" not in answer, answer
    assert b"root" not in answer
    if b" 200 " in answer.split(b"\r\n", 1)[0]:
        assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_connection_is_not_upgraded(fleet: Fleet, server: dict[str, Any]) -> None:
    for kind in ("websocket", "h2c"):
        headers = {
            "Connection": "Upgrade",
            "Upgrade": kind,
            "Sec-WebSocket-Key": "x",
            "Sec-WebSocket-Version": "13",
        }
        answer = await fleet.through(server, "/x", headers=headers)
        assert answer.status_code == 422
        assert "not supported" in answer.json()["error"]["message"]


async def test_a_large_answer_streams_with_its_type_and_our_memory_does_not_grow_with_it(
    fleet: Fleet, server: dict[str, Any]
) -> None:
    chunks, size, pieces = 3000, 0, 0
    headers = {"Authorization": "Bearer bob", "Accept": "application/vnd.apache.arrow.stream"}
    url = f"/wrapper/{server['url_slug']}/stream?chunks={chunks}"
    before = _resident()
    async with fleet.http.stream("GET", url, headers=headers) as answer:
        assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
        assert answer.headers["content-security-policy"] == f"{POLICY}; sandbox"
        async for piece in answer.aiter_raw():
            size, pieces = size + len(piece), pieces + 1
    assert size == chunks * len(CHUNK)
    assert pieces > 100
    assert _resident() - before < 50 << 20, f"{size >> 20} MiB passed"


def _resident() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * 4096


async def test_a_body_streams_to_the_server_with_or_without_a_length(
    fleet: Fleet, server: dict[str, Any]
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield CHUNK

    plain = await fleet.through(server, "/upload", method="POST", content=CHUNK * 64)
    chunked = await fleet.through(server, "/upload", method="POST", content=pieces())
    for answer in (plain, chunked):
        assert answer.json()["size"] == 64 * len(CHUNK)
    too_large = await fleet.through(server, "/upload", method="POST", content=CHUNK * 200)
    assert too_large.status_code == 413


async def test_a_caller_that_goes_away_takes_its_request_to_the_server_with_it(
    fleet: Fleet, server: dict[str, Any]
) -> None:
    before = await counters(fleet, server)
    waiting = asyncio.create_task(
        fleet.through(server, "/slow", method="POST", json={"query": "long"})
    )

    async def arrived() -> bool:
        return bool((await counters(fleet, server))["waiting"] > before["waiting"])

    await until(arrived)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    async def cut() -> bool:
        return bool((await counters(fleet, server))["cancelled"] > before["cancelled"])

    await until(cut, within=10)


async def test_a_caller_that_goes_away_in_the_middle_of_an_answer_ends_it_at_the_server(
    fleet: Fleet, server: dict[str, Any]
) -> None:
    before = await counters(fleet, server)
    url = f"/wrapper/{server['url_slug']}/stream?chunks=1000000"
    async with (
        httpx2.AsyncClient(
            base_url=fleet.http.base_url, headers={"Authorization": "Bearer ada"}
        ) as leaving,
        leaving.stream("GET", url) as answer,
    ):
        await anext(answer.aiter_raw())

    async def cut() -> bool:
        return bool((await counters(fleet, server))["cancelled"] > before["cancelled"])

    await until(cut, within=10)


async def test_an_instance_that_starts_is_503_with_a_reason_and_a_time_to_come_back(
    fleet: Fleet, tmp_path: Path
) -> None:
    fleet.tell(hold=True)
    try:
        instance = await fleet.create()
        answer = await fleet.through(instance, "/query", method="POST", json={})
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        error = answer.json()["error"]
        assert (error["code"], error["details"]["status"]) == ("UNAVAILABLE", "starting")
    finally:
        fleet.tell()
    await fleet.reaches(instance["id"], "running")


async def test_an_answer_that_breaks_off_breaks_off_for_the_caller_too(fleet: Fleet) -> None:
    doomed = await fleet.running()
    row = await fleet.row(doomed["id"])
    url = f"/wrapper/{doomed['url_slug']}/stream?chunks=1000000"
    async with fleet.http.stream("GET", url, headers={"Authorization": "Bearer ada"}) as answer:
        pieces = answer.aiter_raw()
        await anext(pieces)
        await fleet.launcher.stop(row.handle, grace=0)
        with pytest.raises(httpx2.TransportError):
            await _rest(pieces)


async def _rest(pieces: AsyncIterator[bytes]) -> None:
    async for _ in pieces:
        continue


async def test_queries_are_counted_and_other_requests_are_not(
    fleet: Fleet, server: dict[str, Any]
) -> None:
    for method, path in (
        ("POST", "/query"),
        ("POST", "/query?x=1"),
        ("GET", "/query"),
        ("POST", "/schema"),
    ):
        await fleet.through(server, path, who="bob", method=method)
    assert (
        'penstock_statements_total{surface="cypher"} 2.0' in (await fleet.http.get("/metrics")).text
    )


async def test_a_graph_of_a_private_source_answers_only_whoever_may_use_it_now(
    fleet: Fleet,
) -> None:
    source = await fleet.graphs.sources.add(
        name="private", kind="duckdb", owner="ada", config={}, secrets={}
    )
    assert fleet.services.people is not None
    await fleet.services.people.users.provide(
        "bob", role=Role.ANALYST, email=None, display_name=None
    )
    server = await fleet.running(
        snapshot_id=await fleet.snapshot(data_source_id=source.data_source_id)
    )
    shares = f"/api/data-sources/{source.data_source_id}/shares/bob"

    async def answered(who: str) -> int:
        answer: httpx2.Response = await fleet.through(server, "/told", who=who)
        return answer.status_code

    assert [await answered(who) for who in ("ada", "olga", "bob")] == [200, 200, 403]
    await fleet.ask("PUT", shares, role="use")
    assert await answered("bob") == 200
    await fleet.ask("DELETE", shares)
    assert await answered("bob") == 403
