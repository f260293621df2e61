"""No caller has others wait behind their requests."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from penstock.api.callers import caller_queues
from penstock.api.callers.caller_queues import AT_ONCE, MOST_WAITING, CallerQueues

if TYPE_CHECKING:
    import pytest
    from starlette.types import Message, Receive, Scope, Send

ANN, BEN = (b"authorization", b"Bearer ann"), (b"authorization", b"Bearer ben")


class Requests:
    """Requests to an application that begins its answers when it is told, and never ends them
    before the test does."""

    def __init__(self) -> None:
        self.queues = CallerQueues(self._answer)
        self.entered: list[Scope] = []
        self.may_begin = asyncio.Event()
        self.may_end = asyncio.Event()
        self.sent: list[Message] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def send(
        self, count: int, *headers: tuple[bytes, bytes], path: str = "/api/mappings", **more: Any
    ) -> int:
        """How many of these requests are worked on."""
        before = len(self.entered)
        services = SimpleNamespace(proxies=())
        scope = {
            "type": "http",
            "path": path,
            "headers": list(headers),
            "client": ("198.51.100.7", 1),
            "app": SimpleNamespace(state=SimpleNamespace(services=services)),
            "state": {"request_id": "1"},
        } | more
        self._tasks += [
            asyncio.create_task(self.queues(dict(scope), self._receive, self._send))
            for _ in range(count)
        ]
        await self.settle()
        return len(self.entered) - before

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def end(self) -> None:
        self.may_begin.set()
        self.may_end.set()
        await asyncio.gather(*self._tasks)

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, scope: Scope, _receive: Receive, send: Send) -> None:
        self.entered.append(scope)
        await self.may_begin.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.may_end.wait()

    async def _receive(self) -> Message:
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


async def test_so_many_requests_of_a_caller_are_worked_on_and_nobody_waits_behind_the_rest() -> (
    None
):
    requests = Requests()
    assert await requests.send(AT_ONCE + 5, ANN) == AT_ONCE
    assert await requests.send(3, BEN) == 3
    assert await requests.send(1, ANN) == 0
    await requests.end()
    assert len(requests.entered) == AT_ONCE + 9


async def test_a_request_whose_answer_has_begun_makes_room_for_the_next() -> None:
    requests = Requests()
    await requests.send(AT_ONCE + 2, ANN)
    requests.may_begin.set()
    await requests.settle()
    assert len(requests.entered) == AT_ONCE + 2
    await requests.end()


async def test_a_caller_is_known_by_the_credential_whatever_else_is_sent() -> None:
    requests = Requests()
    assert await requests.send(AT_ONCE, ANN) == AT_ONCE
    for number in range(3):
        assert await requests.send(1, (b"cookie", b"%d" % number), ANN) == 0
    for scheme in (b"bearer", b"BEARER "):
        assert await requests.send(1, (b"authorization", scheme + b" ann")) == 0
    await requests.end()


async def test_without_a_credential_the_address_is_the_caller() -> None:
    requests = Requests()
    assert await requests.send(AT_ONCE + 1) == AT_ONCE
    assert await requests.send(1, client=("198.51.100.8", 1)) == 1
    await requests.end()


async def test_workers_are_not_counted() -> None:
    requests = Requests()
    claims = "/api/internal/jobs/claim"
    assert await requests.send(AT_ONCE + 50, ANN, path=claims) == AT_ONCE + 50
    await requests.end()


async def test_as_many_wait_as_may_and_one_more_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caller_queues, "REFUSAL_SECONDS", 0)
    requests = Requests()
    await requests.send(AT_ONCE + MOST_WAITING, ANN)
    assert requests.sent == []
    await requests.send(1, ANN)
    assert requests.sent[0]["status"] == 429
    await requests.end()
    assert len(requests.entered) == AT_ONCE + MOST_WAITING


async def test_requests_that_are_given_up_leave_no_turn_taken() -> None:
    requests = Requests()
    await requests.send(AT_ONCE + 5, ANN)
    await requests.cancel()
    assert await requests.send(AT_ONCE, ANN) == AT_ONCE
    await requests.cancel()
