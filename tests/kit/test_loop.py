"""A loop runs in one process at a time, survives its own errors, and comes when it is called."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from penstock.kit import loop as loops
from penstock.kit.db import Db
from penstock.kit.loop import Loop, LoopMetrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True, slots=True)
class Count:
    total: int = 1


class Ticking(Loop[Count]):
    name = "ticking"

    def __init__(self, db: Db, *, every: float = 3600) -> None:
        self.registry = CollectorRegistry()
        super().__init__(db, every=every, metrics=LoopMetrics(self.registry))
        self.passes = 0
        self.error: Exception | None = None
        self.ends: asyncio.Queue[str] = asyncio.Queue()

    async def run_once(self) -> Count:
        self.passes += 1
        if self.error is not None:
            raise self.error
        return Count()

    async def pass_(self, *, if_due: bool = False) -> str:
        status = await super().pass_(if_due=if_due)
        self.ends.put_nowait(status)
        return status

    async def end(self) -> str:
        """How the next pass ended."""
        return await asyncio.wait_for(self.ends.get(), 5)

    def counted(self, status: str) -> float | None:
        return self.registry.get_sample_value(
            "background_job_execution_total", {"job_name": self.name, "status": status}
        )


class Notes:
    """A board on which a test writes."""

    def __init__(self) -> None:
        self.due = 0.0
        self.seen: list[tuple[str, str]] = []

    async def due_in(self, name: str) -> float:
        return self.due

    async def ran(self, name: str, status: str, *, every: float) -> None:
        self.seen.append((name, status))


@pytest.fixture
async def db(database: str) -> AsyncIterator[Db]:
    async with Db(database, size=4) as database_pool:
        yield database_pool


async def test_who_does_not_have_the_turn_skips_it(db: Db) -> None:
    one, other = Ticking(db), Ticking(db)
    async with one._turn() as mine:
        assert mine
        assert await other.pass_() == "skipped"
    assert await other.pass_() == "success"
    assert (other.passes, other.counted("skipped"), other.counted("success")) == (1, 1, 1)


async def test_an_error_is_counted_noted_and_survived(db: Db) -> None:
    ticking, notes = Ticking(db, every=0.02), Notes()
    ticking.error = RuntimeError("boom")
    ticking.start(notes)
    try:
        assert [await ticking.end(), await ticking.end()] == ["failed", "failed"]
        ticking.error = None
        while await ticking.end() != "success":
            pass
    finally:
        await ticking.stop()
    assert (ticking.counted("failed") or 0) >= 2
    assert notes.seen[0] == ("ticking", "failed")
    assert ("ticking", "success") in notes.seen


async def test_what_another_process_did_lately_is_not_done_again_unless_it_is_asked_for(
    db: Db,
) -> None:
    ticking, notes = Ticking(db), Notes()
    ticking.start(notes)
    try:
        assert await ticking.end() == "success"
        notes.due = 60.0
        assert await ticking.pass_(if_due=True) == "skipped"
        assert await ticking.pass_() == "success"
        notes.due = -1.0
        assert await ticking.pass_(if_due=True) == "success"
        notes.due = 60.0
        passes = ticking.passes
        ticking.trigger()
        assert [await ticking.end() for _ in range(4)][-1] == "success"
        assert ticking.passes == passes + 1
    finally:
        await ticking.stop()
    assert ticking.counted("skipped") == 1


async def test_a_triggered_loop_comes_after_the_process_that_has_its_turn(
    db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "TURN_SECONDS", 0.02)
    one, other = Ticking(db), Ticking(db)
    other.start()
    try:
        assert await other.end() == "success"
        async with one._turn() as mine:
            assert mine
            other.trigger()
            assert [await other.end(), await other.end()] == ["skipped", "skipped"]
            assert other.passes == 1
        while await other.end() != "success":
            pass
        assert other.passes == 2
    finally:
        await other.stop()


async def test_a_turn_ends_with_its_connection_and_the_next_one_begins_on_a_new_one(
    db: Db, database: str
) -> None:
    one, other = Ticking(db), Ticking(db)
    async with Db(database, size=1) as third, one._turn() as mine:
        assert mine
        async with third.connection() as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND"
                " database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        async with asyncio.timeout(5):
            while await other.pass_() != "success":  # noqa: ASYNC110
                await asyncio.sleep(
                    0
                )  # a turn that is held here asks nobody: let the news of its end come in
        assert other.passes == 1
    assert await one.pass_() == "success"
