"""Turns at what costs memory: how many at once, and how many of one user."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from penstock.kit.concurrency_limit import ConcurrencyLimit
from penstock.kit.errors import RateLimited


async def test_a_user_takes_as_many_turns_as_allowed_and_not_one_more() -> None:
    turns = ConcurrencyLimit(total=10, per_user=2, patience=0.01)
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(turns.taken("ann"))
        with pytest.raises(RateLimited, match="ann has 2"):
            await stack.enter_async_context(turns.taken("ann"))
        await stack.enter_async_context(turns.taken("ben"))
    async with turns.taken("ann"), turns.taken("ann"):
        assert set(turns._users) == {"ann"}
    assert not turns._users


async def test_a_turn_is_waited_for_until_somebody_ends_theirs() -> None:
    turns = ConcurrencyLimit(total=1, per_user=1)
    entered = asyncio.Event()

    async def ben() -> None:
        async with turns.taken("ben"):
            entered.set()

    async with turns.taken("ann"):
        waiting = asyncio.create_task(ben())
        await asyncio.sleep(0)
        assert not entered.is_set()
    await waiting
    assert entered.is_set()


async def test_whoever_waits_for_a_turn_of_their_own_takes_none_of_the_others() -> None:
    turns = ConcurrencyLimit(total=2, per_user=1)
    async with turns.taken("ann"):
        waiting = asyncio.create_task(_take(turns, "ann"))
        await asyncio.sleep(0)
        async with asyncio.timeout(10), turns.taken("ben"):
            assert not waiting.done()
    await waiting


async def test_whoever_waits_too_long_is_told_to_come_back_and_leaves_no_turn_taken() -> None:
    turns = ConcurrencyLimit(total=1, per_user=1, patience=0.01)
    async with turns.taken("ann"):
        with pytest.raises(RateLimited) as caught:
            async with turns.taken("ben"):
                raise AssertionError("there was no turn to take")
        assert caught.value.details["retry_after_seconds"] == 5
    async with turns.taken("ben"):
        pass
    assert not turns._users


async def test_a_question_that_fails_or_is_cancelled_gives_its_turn_back() -> None:
    turns = ConcurrencyLimit(total=1, per_user=1)
    with pytest.raises(KeyError):
        async with turns.taken("ann"):
            raise KeyError
    async with turns.taken("ann"):
        pass


async def _take(turns: ConcurrencyLimit, username: str) -> None:
    async with turns.taken(username):
        pass
