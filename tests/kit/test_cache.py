"""What is remembered holds until a change is heard of, and for a moment at most."""

from __future__ import annotations

import asyncio

from penstock.kit.cache import InvalidatedCache


class Source:
    def __init__(self) -> None:
        self.value: str | None = "first"
        self.version: int | None = 1
        self.now = 0.0
        self.looks = 0
        self.answers = InvalidatedCache[str](
            lambda: self.version, seconds=1.0, most=2, ticks=lambda: self.now
        )

    async def look(self) -> str | None:
        self.looks += 1
        return self.value

    async def get(self, key: str = "key") -> str | None:
        return await self.answers.get(key, self.look)


async def test_it_is_looked_up_once_until_a_change_is_heard_of() -> None:
    source = Source()
    assert [await source.get() for _ in range(3)] == ["first"] * 3
    assert source.looks == 1
    source.value, source.version = "second", 2
    assert await source.get() == "second"


async def test_a_change_that_nobody_heard_of_shows_after_a_moment() -> None:
    source = Source()
    await source.get()
    source.value, source.now = "second", 0.9
    assert await source.get() == "first"
    source.now = 1.0
    assert await source.get() == "second"


async def test_nothing_is_remembered_while_changes_cannot_be_heard_of() -> None:
    source = Source()
    await source.get()
    source.version = None
    source.value = "second"
    assert await source.get() == "second"
    assert [await source.get() for _ in range(2)] == ["second"] * 2
    assert source.looks == 4


async def test_a_change_during_the_look_makes_its_answer_old() -> None:
    source = Source()
    begun, done = asyncio.Event(), asyncio.Event()

    async def slow() -> str | None:
        begun.set()
        await done.wait()
        return "before the change"

    looking = asyncio.create_task(source.answers.get("key", slow))
    await begun.wait()
    source.value, source.version = "after it", 2
    done.set()
    assert await looking == "before the change"
    assert await source.get() == "after it"


async def test_that_there_is_nothing_is_not_remembered() -> None:
    source = Source()
    source.value = None
    assert await source.get() is None
    source.value = "now"
    assert await source.get() == "now"


async def test_what_does_not_last_is_not_remembered() -> None:
    source = Source()
    for _ in range(2):
        await source.answers.get("key", source.look, lasts=lambda _: False)
    assert source.looks == 2


async def test_it_forgets_the_oldest_beyond_its_size() -> None:
    source = Source()
    for key in ("a", "b", "c", "b", "a"):
        await source.get(key)
    assert source.looks == 4
