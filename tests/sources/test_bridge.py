from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from penstock.sources import threaded_stream
from penstock.sources.errors import SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

DEADLINE = 10


class Blocked:
    """A driver whose second read hangs until it is cancelled, as a query on a slow server does."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.closed = threading.Event()
        self.hanging = threading.Event()

    def read(self) -> Iterator[int]:
        try:
            yield 1
            self.hanging.set()
            if self.cancelled.wait(DEADLINE):
                raise ConnectionError("cancelled at the source")
        finally:
            self.closed.set()

    def cancel(self) -> None:
        self.cancelled.set()


def threads(name: str) -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith(f"source-{name}")]


def nothing() -> None:
    pass


async def test_items_arrive_in_order_and_the_thread_is_gone_after_the_last() -> None:
    assert [
        i async for i in threaded_stream.stream(lambda: iter(range(1000)), nothing, name="order")
    ] == list(range(1000))
    assert threads("order") == []


async def test_the_thread_reads_no_further_than_one_item_ahead() -> None:
    asked: list[int] = []
    third = threading.Event()

    def read() -> Iterator[int]:
        for i in range(10):
            asked.append(i)
            if i == 2:
                third.set()
            yield i

    async with aclosing(threaded_stream.stream(read, nothing, name="ahead")) as items:
        assert await anext(items) == 0
        assert await anext(items) == 1
        assert await asyncio.to_thread(third.wait, DEADLINE)
        assert asked == [0, 1, 2]


async def test_an_error_keeps_its_type_and_the_items_before_it() -> None:
    def read() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError("late")

    items = threaded_stream.stream(read, nothing, name="error")
    assert await anext(items) == 1
    with pytest.raises(ZeroDivisionError, match="late"):
        await anext(items)
    assert threads("error") == []


async def test_closing_early_cancels_the_blocked_call_and_ends_its_thread() -> None:
    driver = Blocked()
    items = threaded_stream.stream(driver.read, driver.cancel, name="early")
    assert await anext(items) == 1
    await asyncio.to_thread(driver.hanging.wait, DEADLINE)
    await items.aclose()
    assert driver.cancelled.is_set()
    assert driver.closed.is_set()
    assert threads("early") == []


async def test_cancelling_the_task_cancels_the_blocked_call() -> None:
    driver = Blocked()

    async def consume() -> None:
        async with aclosing(
            threaded_stream.stream(driver.read, driver.cancel, name="task")
        ) as items:
            async for _ in items:
                pass

    task = asyncio.create_task(consume())
    await asyncio.to_thread(driver.hanging.wait, DEADLINE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert driver.closed.is_set()
    assert threads("task") == []


async def test_silence_is_an_unavailable_source_and_cancels_it() -> None:
    driver = Blocked()
    items = threaded_stream.stream(driver.read, driver.cancel, name="silent", silence=0.05)
    assert await anext(items) == 1
    with pytest.raises(SourceUnavailable, match="silent"):
        await anext(items)
    assert driver.cancelled.is_set()
    assert threads("silent") == []


async def test_a_source_that_hears_no_cancel_is_left_behind_after_the_grace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threaded_stream, "GRACE", 0.05)
    driver = Blocked()
    items = threaded_stream.stream(driver.read, nothing, name="deaf")
    assert await anext(items) == 1
    await asyncio.to_thread(driver.hanging.wait, DEADLINE)
    await items.aclose()
    assert not driver.closed.is_set()
    driver.cancelled.set()
    assert await asyncio.to_thread(driver.closed.wait, DEADLINE)


async def test_a_cancel_that_fails_does_not_hide_why_the_consumer_left() -> None:
    def refuse() -> None:
        driver.cancelled.set()
        raise OSError("no way to the server")

    driver = Blocked()
    async with aclosing(threaded_stream.stream(driver.read, refuse, name="refuse")) as items:
        assert await anext(items) == 1
    assert driver.closed.is_set()


async def test_many_streams_that_are_closed_at_once_leave_no_thread() -> None:
    drivers = [Blocked() for _ in range(50)]
    streams = [threaded_stream.stream(d.read, d.cancel, name="many") for d in drivers]
    await asyncio.gather(*(anext(s) for s in streams))
    await asyncio.gather(*(s.aclose() for s in streams))
    assert threads("many") == []


async def test_a_call_returns_its_value_and_cancels_nothing() -> None:
    cancelled = threading.Event()
    assert await threaded_stream.call(lambda: 42, cancelled.set, name="call") == 42
    assert not cancelled.is_set()
    assert threads("call") == []


async def test_a_call_that_takes_too_long_is_cancelled() -> None:
    release = threading.Event()
    with pytest.raises(SourceUnavailable):
        await threaded_stream.call(
            lambda: release.wait(DEADLINE), release.set, name="slow", within=0.05
        )
    assert release.is_set()
