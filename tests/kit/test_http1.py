"""The thin client against servers that say exactly these bytes, on both event loops."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import uvloop

from penstock.kit.errors import InvalidInput
from penstock.kit.http1 import HIGH_WATER, Broken, Connections, Origin, head_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    Loops = Callable[[], asyncio.AbstractEventLoop]
    Run = Callable[[Coroutine[None, None, None]], None]

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    loops: Loops = request.param

    def to_its_end(work: Coroutine[None, None, None]) -> None:
        with asyncio.Runner(loop_factory=loops) as runner:
            runner.run(asyncio.wait_for(work, 30))

    return to_its_end


class Server:
    """Answers each request that it reads with the next of its answers, and closes after the
    last.
    """

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.connections = 0

    @asynccontextmanager
    async def reached(self, limit: int = 4) -> AsyncIterator[Connections]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connections = Connections(
            Origin(host="127.0.0.1", port=port), limit=limit, connect_seconds=5
        )
        try:
            yield connections
        finally:
            connections.close()
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self._answers and await reader.readuntil(b"\r\n\r\n"):
                answer = self._answers.pop(0)
                writer.write(answer)
                await writer.drain()
                if b"Content-Length" not in answer and b"chunked" not in answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


async def ask(connections: Connections) -> tuple[int, bytes]:
    connection = await connections.take()
    try:
        await connection.send(GET)
        await connection.head()
        body = b"".join([piece async for piece in connection.pieces()])
        return connection.status, body
    finally:
        connections.give_back(connection)


def test_a_connection_whose_answer_was_read_carries_the_next_request(run: Run) -> None:
    async def work() -> None:
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        server = Server(OK, chunked, OK)
        async with server.reached() as connections:
            assert [await ask(connections) for _ in range(3)] == [(200, b"ok")] * 3
        assert server.connections == 1

    run(work())


def test_an_answer_without_a_length_ends_with_its_connection(run: Run) -> None:
    async def work() -> None:
        server = Server(b"HTTP/1.1 200 OK\r\n\r\nall of it", OK)
        async with server.reached() as connections:
            assert await ask(connections) == (200, b"all of it")
            assert await ask(connections) == (200, b"ok")
        assert server.connections == 2

    run(work())


def test_an_answer_that_breaks_off_is_never_whole(run: Run) -> None:
    async def work() -> None:
        cut = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
        server = Server(cut)
        async with server.reached() as connections:
            with pytest.raises(Broken):
                await ask(connections)

    run(work())


def test_an_answer_that_nobody_asked_for_is_given_to_nobody(run: Run) -> None:
    async def work() -> None:
        forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
        server = Server(OK + forged, OK)
        async with server.reached() as connections:
            assert await ask(connections) == (200, b"ok")
            assert await ask(connections) == (200, b"ok")
        assert server.connections == 2

    run(work())


def test_what_is_said_before_the_answer_is_passed_over(run: Run) -> None:
    async def work() -> None:
        server = Server(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + OK)
        async with server.reached() as connections:
            assert await ask(connections) == (200, b"ok")

    run(work())


def test_what_is_not_http_is_broken(run: Run) -> None:
    async def work() -> None:
        async with Server(b"220 mail.example.org ESMTP Content-Length\r\n").reached() as them:
            with pytest.raises(Broken):
                await ask(them)

    run(work())


def test_an_answer_that_comes_faster_than_it_is_read_waits(run: Run) -> None:
    async def work() -> None:
        size = 40 * HIGH_WATER
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
        async with Server(head + bytes(size)).reached() as connections:
            connection = await connections.take()
            await connection.send(GET)
            await connection.head()
            most = total = 0
            async for piece in connection.pieces():
                total += len(piece)
                most = max(most, connection.waiting_bytes)
                await asyncio.sleep(0)
            connections.give_back(connection)
            assert total == size
            assert most < 8 * HIGH_WATER

    run(work())


def test_whoever_comes_when_all_connections_are_taken_waits_for_one(run: Run) -> None:
    async def work() -> None:
        server = Server(*[OK] * 20)
        async with server.reached(limit=2) as connections:
            answers = await asyncio.gather(*(ask(connections) for _ in range(20)))
        assert answers == [(200, b"ok")] * 20
        assert server.connections <= 2

    run(work())


def test_nobody_there_is_broken_and_frees_its_place(run: Run) -> None:
    async def work() -> None:
        nobody = Connections(Origin(socket="/nonexistent/s"), limit=1, connect_seconds=1)
        for _ in range(3):
            with pytest.raises(Broken):
                await nobody.take()

    run(work())


@pytest.mark.parametrize("value", [b"a\r\nX-Penstock-User: root", b"a\nb", b"a\rb", b"a\0b"])
def test_a_header_cannot_bring_another_one(value: bytes) -> None:
    with pytest.raises(InvalidInput):
        head_of(b"GET / HTTP/1.1", [(b"x-a", value)])
