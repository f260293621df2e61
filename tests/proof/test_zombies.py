"""A worker that lost its job and does not know it: every late write of its, after every way of
losing the job.

Each pair is refused, changes nothing in any table, and is logged and counted. The one exception is
a write that repeats what the same attempt did before: it stands already, so it is answered with
yes, and changes nothing either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from penstock.jobs.model import (
    Claimed,
    Ending,
    Failed,
    GroupSpec,
    JobSpec,
    Outcome,
    Parking,
    ProgressUpdate,
    Release,
    Succeeded,
    Verdict,
)
from penstock.kit.errors import ResourceLocked, StaleAttempt
from penstock.kit.sqlfile import parse
from tests.proof.stand import LEASE, SESSION, beat, registration

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.proof.stand import Stand

    Act = Callable[[Stand, Claimed], Awaitable[object]]

LOCK = "table:orders"
NEXT = JobSpec(kind="plain", lock_key=LOCK)


# how a job is lost


async def reaped(stand: Stand, zombie: Claimed) -> None:
    await stand.advance(LEASE + 1)
    await stand.store.reap()


async def reaped_and_claimed_again(stand: Stand, zombie: Claimed) -> None:
    await stand.advance(LEASE + 1)
    await stand.store.reap()
    await stand.claim_one("w2")


async def cancelled(stand: Stand, zombie: Claimed) -> None:
    await stand.store.cancel(zombie.job_id, actor="somebody")


async def finished_by_another(stand: Stand, zombie: Claimed) -> None:
    await stand.advance(LEASE + 1)
    await stand.store.reap()
    other = await stand.claim_one("w2")
    await stand.store.finish([Ending(fence=other.fence, outcome=Succeeded(result="of the other"))])
    await stand.add(NEXT)


async def parked_and_claimed_again(stand: Stand, zombie: Claimed) -> None:
    await stand.store.park([Parking(fence=zombie.fence, state={"query": 7}, wake_in=0)])
    await stand.claim_one("w2")


async def released_and_claimed_again(stand: Stand, zombie: Claimed) -> None:
    await stand.store.release([Release(fence=zombie.fence, reason="SIGTERM")])
    await stand.claim_one("w2")


async def taken_over_by_its_successor(stand: Stand, zombie: Claimed) -> None:
    await stand.store.register(registration(UUID(int=99)))


async def taken_over_and_claimed_again(stand: Stand, zombie: Claimed) -> None:
    await taken_over_by_its_successor(stand, zombie)
    await stand.claim(session=UUID(int=99))


LOSSES: list[Act] = [
    reaped,
    reaped_and_claimed_again,
    cancelled,
    finished_by_another,
    parked_and_claimed_again,
    released_and_claimed_again,
    taken_over_by_its_successor,
    taken_over_and_claimed_again,
]


# what comes too late; each says whether it was taken


def ends(outcome: Outcome) -> Act:
    async def end(stand: Stand, zombie: Claimed) -> bool:
        [verdict] = await stand.store.finish([Ending(fence=zombie.fence, outcome=outcome)])
        return verdict is not Verdict.STALE

    return end


async def exchanges(stand: Stand, zombie: Claimed) -> bool:
    ending = Ending(fence=zombie.fence, outcome=Succeeded(result="too late"))
    answer = await stand.store.exchange([ending], "w1", ["nothing_here"], 5)
    return answer.verdicts != [Verdict.STALE]


async def parks(stand: Stand, zombie: Claimed) -> bool:
    return await stand.store.park([Parking(fence=zombie.fence, state={"query": 8}, wake_in=1)]) == [
        True
    ]


async def releases(stand: Stand, zombie: Claimed) -> bool:
    return await stand.store.release([Release(fence=zombie.fence, reason="too late")]) == [True]


async def shows_progress(stand: Stand, zombie: Claimed) -> bool:
    return await stand.store.progress(
        [ProgressUpdate(fence=zombie.fence, progress={"rows": 1})]
    ) == [True]


async def renews(stand: Stand, zombie: Claimed) -> bool:
    renewal = await stand.store.renew(beat(zombie.fence))
    return zombie.fence not in (*renewal.lost, *renewal.cancelled)


async def writes_its_own_rows(stand: Stand, zombie: Claimed) -> bool:
    try:
        async with stand.store.fenced_transaction(zombie.fence) as tx:
            await tx.fetch(parse("write", "UPDATE penstock.job SET trace = 'written by a zombie'"))
    except StaleAttempt:
        return False
    return True


LATE_WRITES: dict[str, Act] = {
    "completes": ends(Succeeded(result="too late")),
    "fails": ends(Failed(error={"code": "TOO_LATE"})),
    "asks for a retry": ends(Failed(error={"code": "TOO_LATE"}, retry_in=1)),
    "spawns": ends(Succeeded(spawn=[JobSpec(kind="plain"), JobSpec(kind="once")])),
    "exchanges": exchanges,
    "parks": parks,
    "releases": releases,
    "shows progress": shows_progress,
    "renews": renews,
    "writes its own rows": writes_its_own_rows,
}
OWN_HAND = {
    ("parks", parked_and_claimed_again),
    ("releases", released_and_claimed_again),
    ("renews", parked_and_claimed_again),
    ("renews", released_and_claimed_again),
}
"""The attempt gave the job up itself: a repetition is no news, and a renewal has nothing to tell.
"""
CANCELLED_RENEWAL = ("renews", cancelled)


async def a_zombie(stand: Stand) -> Claimed:
    await stand.empty()
    await stand.store.open_group(
        GroupSpec(name="g", deadline_in=None), [JobSpec(kind="plain", lock_key=LOCK)]
    )
    await stand.store.register(registration(SESSION))
    [zombie] = await stand.claim(session=SESSION)
    return zombie


def stale_count(stand: Stand) -> float:
    return stand.store.metrics.registry.get_sample_value("penstock_stale_attempts_total") or 0


@pytest.mark.parametrize("write", LATE_WRITES)
async def test_a_zombie_changes_nothing_when_it(stand: Stand, write: str) -> None:
    await try_late(stand, write)


async def test_a_zombie_changes_nothing_on_the_oldest_server_either(old_stand: Stand) -> None:
    for write in LATE_WRITES:
        await try_late(old_stand, write)


async def try_late(stand: Stand, write: str) -> None:
    for lose in LOSSES:
        zombie = await a_zombie(stand)
        await lose(stand, zombie)
        before, counted = await stand.dump(), stale_count(stand)
        with capture_logs() as logs:
            taken = await LATE_WRITES[write](stand, zombie)
        pair = (write, lose)
        assert await stand.dump() == before, f"{write} after {lose.__name__}"
        assert taken == (pair in OWN_HAND), f"{write} after {lose.__name__}"
        events = [e for e in logs if e["event"] == "stale_attempt"]
        expected = 0 if pair in OWN_HAND or pair == CANCELLED_RENEWAL else 1
        assert (len(events), stale_count(stand) - counted) == (expected, expected), (
            f"{write} after {lose.__name__}"
        )
        assert all(e["attempt_id"] == str(zombie.fence.attempt_id) for e in events)


@pytest.mark.parametrize("write", LATE_WRITES)
async def test_a_zombie_frees_no_lock_when_it(stand: Stand, write: str) -> None:
    """Whoever holds the lock by then, the same attempt or another job, holds it still."""
    for lose in LOSSES:
        zombie = await a_zombie(stand)
        await lose(stand, zombie)
        if lose is cancelled:
            await stand.add(NEXT)
        await LATE_WRITES[write](stand, zombie)
        with pytest.raises(ResourceLocked):
            await stand.add(NEXT)


async def test_pgqueuer_takes_the_late_complete_of_a_zombie(database: str) -> None:
    """The contrast: what the matrix would look like without a fence."""
    from datetime import timedelta
    from uuid import uuid4

    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.domain.types import QueueEntrypoint, QueueManagerId
    from pgqueuer.ports.repository import EntrypointExecutionParameter
    from pgqueuer.queries import Queries

    connection = await asyncpg.connect(database)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.enqueue("work", b"")
    limits = {QueueEntrypoint("work"): EntrypointExecutionParameter(0)}
    [zombie] = await queries.dequeue(
        1, limits, QueueManagerId(uuid4()), None, timedelta(seconds=30)
    )
    await connection.execute("UPDATE pgqueuer SET heartbeat = heartbeat - interval '1 hour'")
    [owner] = await queries.dequeue(1, limits, QueueManagerId(uuid4()), None, timedelta(seconds=30))
    assert owner.id == zombie.id
    await queries.log_jobs([(zombie, "successful", None)])
    assert await connection.fetchval("SELECT count(*) FROM pgqueuer") == 0, (
        "the owner's running job is gone"
    )
    await connection.close()


async def test_procrastinate_takes_the_late_complete_of_a_zombie(database: str) -> None:
    from procrastinate import App, PsycopgConnector
    from procrastinate.jobs import Status

    app = App(connector=PsycopgConnector(conninfo=database, min_size=1, max_size=2))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        manager = app.job_manager
        await app.configure_task("work", allow_unknown=True).defer_async()
        zombie = await manager.fetch_job(None, await manager.register_worker())
        assert zombie is not None
        await manager.retry_job(zombie)
        owner = await manager.fetch_job(None, await manager.register_worker())
        assert owner is not None
        assert owner.id == zombie.id
        await manager.finish_job(zombie, Status.SUCCEEDED, delete_job=False)
        assert owner.id is not None
        assert await manager.get_job_status_async(owner.id) == Status.SUCCEEDED, (
            "the owner still runs"
        )
