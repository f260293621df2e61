"""SQL checks outside the event loop: the same verdicts, and a deadline."""

from __future__ import annotations

import asyncio

import pytest

from penstock.guard.checker_process import SqlChecker
from penstock.guard.errors import FunctionRefused, SqlRefused, SqlTooLarge
from penstock.guard.size_limits import SqlLimits
from penstock.kit.errors import RateLimited

QUERIES = ("SELECT a FROM t", "DROP TABLE t", "SELECT pg_sleep(1)", "SELECT 'ü安' AS x")
CHAIN = "SELECT 'a'" + "||'a'" * ((SqlLimits().tokens - 3) // 2)


@pytest.mark.parametrize("few", [0, 10_000], ids=["process", "thread"])
async def test_a_thread_and_a_process_come_to_the_same_verdicts(few: int) -> None:
    verdicts = await SqlChecker(few=few).check(QUERIES, "postgres")
    assert verdicts[0] == 'SELECT "a" FROM "t"'
    assert isinstance(verdicts[1], SqlRefused)
    assert isinstance(verdicts[2], FunctionRefused)
    assert "pg_sleep" in verdicts[2].message.lower()
    assert verdicts[2].details
    assert "ü安" in str(verdicts[3])


async def test_a_long_chain_of_operators_is_checked_and_a_longer_one_is_refused() -> None:
    fits, longer = await SqlChecker().check([CHAIN, CHAIN + "||'a'" * 10], "postgres")
    assert fits == CHAIN.replace("||", " || ")
    assert isinstance(longer, SqlTooLarge)


async def test_checking_ends_at_its_deadline() -> None:
    checker = SqlChecker(few=0, deadline=0.5)
    with pytest.raises(SqlTooLarge, match=r"within 0\.5 seconds"):
        await checker.check([CHAIN] * 500, "postgres")
    slow_enough = SqlChecker(few=0, deadline=60)
    assert await slow_enough.check(["SELECT 1"], "postgres") == ["SELECT 1"]


async def test_only_so_many_processes_check_at_once_and_others_are_told_to_come_again() -> None:
    checker = SqlChecker(few=0, processes=0, wait=0.1)
    with pytest.raises(RateLimited, match="Too many large queries to check"):
        await checker.check(["SELECT 1"], "postgres")
    assert await SqlChecker(few=8, processes=0).check(["SELECT 1"], "postgres") == ["SELECT 1"]


async def test_many_large_queries_of_one_user_leave_a_process_to_others() -> None:
    checker = SqlChecker(few=0, deadline=60)
    slow = [
        asyncio.create_task(checker.check([CHAIN] * 500, "postgres", username="mallory"))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    try:
        assert await checker.check(["SELECT 1"], "postgres", username="ann") == ["SELECT 1"]
        assert not any(task.done() for task in slow)
    finally:
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
