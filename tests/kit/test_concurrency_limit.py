"""Turns at what costs memory: how many at once, and how many of one user."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from penstock.kit.concurrency_limit import ConcurrencyLimit
from penstock.kit.errors import RateLimited


async def test_a_user_takes_as_many_turns_as_allowed_and_not_one_more() -> None:
    limit = ConcurrencyLimit(total=10, per_user=2, patience=0.01)
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(limit.slot("ann"))
        with pytest.raises(RateLimited, match="ann has 2"):
            await stack.enter_async_context(limit.slot("ann"))
        await stack.enter_async_context(limit.slot("ben"))
    async with limit.slot("ann"), limit.slot("ann"):
        assert set(limit._users) == {"ann"}
    assert not limit._users


async def test_a_turn_is_waited_for_until_somebody_ends_theirs() -> None:
    limit = ConcurrencyLimit(total=1, per_user=1)
    entered = asyncio.Event()

    async def ben() -> None:
        async with limit.slot("ben"):
            entered.set()

    async with limit.slot("ann"):
        waiting = asyncio.create_task(ben())
        await asyncio.sleep(0)
        assert not entered.is_set()
    await waiting
    assert entered.is_set()


async def test_whoever_waits_for_a_turn_of_their_own_takes_none_of_the_others() -> None:
    limit = ConcurrencyLimit(total=2, per_user=1)
    async with limit.slot("ann"):
        waiting = asyncio.create_task(_take(limit, "ann"))
        await asyncio.sleep(0)
        async with asyncio.timeout(10), limit.slot("ben"):
            assert not waiting.done()
    await waiting


async def test_whoever_waits_too_long_is_told_to_come_back_and_leaves_no_turn_taken() -> None:
    limit = ConcurrencyLimit(total=1, per_user=1, patience=0.01)
    async with limit.slot("ann"):
        with pytest.raises(RateLimited) as caught:
            async with limit.slot("ben"):
                raise AssertionError("there was no turn to take")
        assert caught.value.details["retry_after_seconds"] == 5
    async with limit.slot("ben"):
        pass
    assert not limit._users


async def test_a_question_that_fails_or_is_cancelled_gives_its_turn_back() -> None:
    limit = ConcurrencyLimit(total=1, per_user=1)
    with pytest.raises(KeyError):
        async with limit.slot("ann"):
            raise KeyError
    async with limit.slot("ann"):
        pass


async def _take(limit: ConcurrencyLimit, username: str) -> None:
    async with limit.slot(username):
        pass
