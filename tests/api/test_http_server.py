"""Connection limits against unauthenticated clients."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from ipaddress import ip_network
from typing import TYPE_CHECKING

import pytest

from penstock.api.serving.server import Server, bind, connection_limits
from penstock.http.server import AddressCounts, ConnectionLimits, HttpProtocol, networks
from penstock.kit.errors import InvalidInput
from penstock.wiring.settings import Settings
from tests.api.raw import Client, connected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
DEADLINE = 30
BRIEF = ConnectionLimits(header_seconds=0.3, body_seconds=0.3)


async def whole_body(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the body to its end and answers with its length and the headers as they are then."""
    length, message = 0, await receive()
    while message["type"] == "http.request":
        length += len(message["body"])
        if not message["more_body"]:
            break
        message = await receive()
    names = b",".join(name for name, _ in scope["headers"])
    await answer(send, str(length).encode() + b" " + names)


async def unread_body(_scope: Scope, _receive: Receive, send: Send) -> None:
    await answer(send, b"no")


async def answer(send: Send, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def served(
    limits: ConnectionLimits,
    app: Callable[[Scope, Receive, Send], Awaitable[None]] = whole_body,
) -> AsyncIterator[tuple[Server, int]]:
    with bind("127.0.0.1", 0) as listener:
        server = Server(app, limits)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await server.tried.wait()
        try:
            async with asyncio.timeout(DEADLINE):
                yield server, listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


@pytest.mark.parametrize(
    "begun",
    [b"", b"POST / HT", HEAD, HEAD + b"X-A: b", b"\r\n"],
    ids=["nothing", "line", "head", "field", "blank"],
)
async def test_a_head_that_does_not_come_to_its_end_is_refused_and_closed(begun: bytes) -> None:
    async with served(BRIEF) as (_, port), connected(port) as client:
        client.send(begun)
        assert await client.until_closed() == (408, "REQUEST_TIMEOUT")


async def test_forty_half_open_connections_are_all_closed_while_others_are_served() -> None:
    async with served(BRIEF) as (server, port), AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(connected(port)) for _ in range(40)]
        for client in slow:
            client.send(HEAD)
        async with connected(port) as ordinary:
            ordinary.send(HEAD + b"Content-Length: 2\r\n\r\nhi")
            assert (await ordinary.answered()).startswith(b"2 ")
        assert {await client.until_closed() for client in slow} == {(408, "REQUEST_TIMEOUT")}
        assert not server.server_state.connections


async def test_a_second_head_on_a_connection_has_no_longer_than_the_first() -> None:
    async with served(BRIEF) as (_, port), connected(port) as client:
        client.send(HEAD + b"Content-Length: 0\r\n\r\n")
        await client.answered()
        client.send(b"\r\n")
        assert await client.until_closed() == (408, "REQUEST_TIMEOUT")


async def test_a_body_that_stops_is_refused_and_closed() -> None:
    async with served(BRIEF) as (_, port), connected(port) as client:
        client.send(HEAD + b"Content-Length: 100\r\n\r\n12345")
        assert await client.until_closed() == (408, "REQUEST_TIMEOUT")


async def test_a_body_that_trickles_is_refused_although_it_never_stops() -> None:
    limits = ConnectionLimits(body_seconds=0.5, bytes_per_second=1_000_000)
    async with served(limits) as (_, port), connected(port) as client:
        client.send(HEAD + b"Content-Length: 1000000000\r\n\r\n")
        trickle = asyncio.create_task(_trickle(client))
        assert await client.until_closed() == (408, "REQUEST_TIMEOUT")
        trickle.cancel()


async def _trickle(client: Client) -> None:
    with suppress(ConnectionError):
        while True:
            await client.sent(b"x")
            await asyncio.sleep(0)


async def test_chunk_extensions_are_no_progress_of_a_body() -> None:
    async with served(BRIEF) as (_, port), connected(port) as client:
        client.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;a=" + b"x" * 1000)
        assert await client.until_closed() == (408, "REQUEST_TIMEOUT")


async def test_time_in_which_the_server_does_not_read_counts_against_nobody() -> None:
    released = asyncio.Event()

    async def slow_reader(scope: Scope, receive: Receive, send: Send) -> None:
        await released.wait()
        await whole_body(scope, receive, send)

    async with served(BRIEF, slow_reader) as (server, port), connected(port) as client:
        body = b"x" * 8_000_000
        sending = asyncio.create_task(client.sent(HEAD + b"Content-Length: 8000000\r\n\r\n" + body))
        connection = await until_paused(server)
        for later in range(1, 100):
            connection.expire(connection.loop.time() + 1000 * later)
        released.set()
        assert (await client.answered()).startswith(b"8000000 ")
        await sending


async def until_paused(server: Server) -> HttpProtocol:
    while True:
        for connection in server.server_state.connections:
            if isinstance(connection, HttpProtocol) and connection.flow.read_paused:
                return connection
        await asyncio.sleep(0)


@pytest.mark.parametrize("pieces", [1, 7])
async def test_a_head_may_be_as_large_as_the_limit_and_not_one_byte_more(pieces: int) -> None:
    async with served(ConnectionLimits(header_bytes=2000)) as (_, port):
        url, fields = len("/"), len("HostxContent-Length0X-Fill")
        for size in (2000, 2001):
            fill = b"X-Fill: " + b"y" * (size - url - fields) + b"\r\n"
            head = HEAD + b"Content-Length: 0\r\n" + fill + b"\r\n"
            async with connected(port) as client:
                step = len(head) // pieces + 1
                for begin in range(0, len(head), step):
                    await client.sent(head[begin : begin + step])
                if size == 2000:
                    assert (await client.answered()).startswith(b"0 ")
                else:
                    assert await client.until_closed() == (431, "HEADERS_TOO_LARGE")


async def test_a_head_without_end_is_refused_before_it_fills_memory() -> None:
    async with served(ConnectionLimits(header_bytes=2000)) as (_, port), connected(port) as client:
        client.send(HEAD + b"X-Fill: ".ljust(5000, b"y"))
        assert await client.until_closed() == (431, "HEADERS_TOO_LARGE")


async def test_fields_behind_a_chunked_body_do_not_become_headers() -> None:
    async with served(ConnectionLimits()) as (_, port), connected(port) as client:
        body = b"2\r\nhi\r\n0\r\nX-Username: root\r\n\r\n"
        client.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body)
        assert await client.answered() == b"2 host,transfer-encoding"


async def test_a_body_nobody_reads_is_taken_up_to_the_limit_and_not_one_byte_more() -> None:
    limits = ConnectionLimits(unread_bytes=1000)
    async with served(limits, unread_body) as (_, port):
        async with connected(port) as client:
            client.send(HEAD + b"Content-Length: 1000\r\n\r\n")
            assert await client.answered() == b"no"
            client.send(b"x" * 1000 + HEAD + b"Content-Length: 0\r\n\r\n")
            assert await client.answered() == b"no"
        for begun in (
            b"Content-Length: 5000\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n",
        ):
            async with connected(port) as client:
                client.send(HEAD + begun)
                assert await client.answered() == b"no"
                client.send(b"x" * 1001)
                assert await client.ended()


@pytest.mark.parametrize(
    ("length", "begun", "closes"),
    [(1000, 0, False), (1001, 0, True), (1001, 1, False), (5000, 3999, True)],
)
async def test_a_client_is_told_before_a_connection_with_an_unread_body_is_closed(
    length: int, begun: int, closes: bool
) -> None:
    limits = ConnectionLimits(unread_bytes=1000)
    async with served(limits, unread_body) as (_, port), connected(port) as client:
        client.send(HEAD + f"Content-Length: {length}\r\n\r\n".encode() + b"x" * begun)
        head, _ = await client.response()
        assert (b"connection: close" in head) == closes
        client.send(b"x" * min(1000, length - begun))
        if closes:
            client.send(b"x")
            assert await client.ended()
        else:
            client.send(HEAD + b"Content-Length: 0\r\n\r\n")
            assert await client.answered() == b"no"


async def test_a_slow_rest_of_a_body_after_its_response_is_cut_off_without_a_second_one() -> None:
    limits = ConnectionLimits(unread_bytes=1000, body_seconds=0.2)
    async with served(limits, unread_body) as (_, port), connected(port) as client:
        client.send(HEAD + b"Content-Length: 5000\r\n\r\nx")
        assert await client.answered() == b"no"
        assert await client.ended()


async def test_an_address_has_as_many_connections_as_the_limit_and_not_one_more() -> None:
    limits = ConnectionLimits(per_address=3, exempt=())
    async with served(limits) as (_, port), AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(port)) for _ in range(3)]
        for client in clients:
            client.send(HEAD + b"Content-Length: 1\r\n\r\nx")
            await client.answered()
        async with connected(port) as refused:
            assert await refused.until_closed() == (429, "RATE_LIMITED")
        clients[0].send(HEAD + b"Connection: close\r\nContent-Length: 1\r\n\r\nx")
        await clients[0].answered()
        assert await clients[0].ended()
        async with connected(port) as next_one:
            next_one.send(HEAD + b"Content-Length: 1\r\n\r\nx")
            assert (await next_one.answered()).startswith(b"1 ")


def test_connections_are_counted_by_host_and_not_for_exempt_networks() -> None:
    limits = ConnectionLimits(per_address=1, exempt=networks("10.0.0.0/8, 192.0.2.7"))
    counts = AddressCounts(limits)
    assert counts.enter("198.51.100.1") == "198.51.100.1"
    assert counts.enter("198.51.100.1") is None
    assert counts.enter("::ffff:198.51.100.1") is None
    assert counts.enter("198.51.100.2") == "198.51.100.2"
    assert counts.enter("2001:db8::1") == "2001:db8::/64"
    assert counts.enter("2001:db8::2") is None
    assert [counts.enter("10.1.2.3") for _ in range(3)] == [""] * 3
    assert [counts.enter("::ffff:192.0.2.7") for _ in range(3)] == [""] * 3
    counts.leave("198.51.100.1")
    assert counts.enter("198.51.100.1") == "198.51.100.1"


def test_the_settings_become_the_limits_of_the_control_plane() -> None:
    settings = Settings(
        header_timeout_seconds=3,
        body_timeout_seconds=4,
        connections_per_address=5,
        connections_exempt="10.0.0.0/8",
    )
    limits = connection_limits(settings)
    assert (limits.header_seconds, limits.body_seconds, limits.per_address) == (3, 4, 5)
    assert limits.exempt == (ip_network("10.0.0.0/8"),)
    assert connection_limits(Settings()) == ConnectionLimits()


def test_an_exempt_network_that_is_none_is_named() -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        networks("10.0.0.0/8, nowhere")
