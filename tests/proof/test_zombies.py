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
from tests.proof.proof_db import LEASE, SESSION, beat, registration

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.proof.proof_db import ProofDatabase

    Act = Callable[[ProofDatabase, Claimed], Awaitable[object]]

LOCK = "table:orders"
NEXT = JobSpec(kind="plain", lock_key=LOCK)


# how a job is lost


async def reaped(proof_db: ProofDatabase, zombie: Claimed) -> None:
    await proof_db.advance(LEASE + 1)
    await proof_db.store.reap()


async def reaped_and_claimed_again(proof_db: ProofDatabase, zombie: Claimed) -> None:
    await proof_db.advance(LEASE + 1)
    await proof_db.store.reap()
    await proof_db.claim_one("w2")


async def cancelled(proof_db: ProofDatabase, zombie: Claimed) -> None:
    await proof_db.store.cancel(zombie.job_id, actor="somebody")


async def finished_by_another(proof_db: ProofDatabase, zombie: Claimed) -> None:
    await proof_db.advance(LEASE + 1)
    await proof_db.store.reap()
    other = await proof_db.claim_one("w2")
    await proof_db.store.finish(
        [Ending(fence=other.fence, outcome=Succeeded(result="of the other"))]
    )
    await proof_db.add(NEXT)


async def parked_and_claimed_again(proof_db: ProofDatabase, zombie: Claimed) -> None:
    await proof_db.store.park([Parking(fence=zombie.fence, state={"query": 7}, wake_in=0)])
    await proof_db.claim_one("w2")


async def released_and_claimed_again(proof_db: ProofDatabase, zombie: Claimed) -> None:
    await proof_db.store.release([Release(fence=zombie.fence, reason="SIGTERM")])
    await proof_db.claim_one("w2")


async def taken_over_by_its_successor(proof_db: ProofDatabase, zombie: Claimed) -> None:
    await proof_db.store.register(registration(UUID(int=99)))


async def taken_over_and_claimed_again(proof_db: ProofDatabase, zombie: Claimed) -> None:
    await taken_over_by_its_successor(proof_db, zombie)
    await proof_db.claim(session=UUID(int=99))


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
    async def end(proof_db: ProofDatabase, zombie: Claimed) -> bool:
        [verdict] = await proof_db.store.finish([Ending(fence=zombie.fence, outcome=outcome)])
        return verdict is not Verdict.STALE

    return end


async def exchanges(proof_db: ProofDatabase, zombie: Claimed) -> bool:
    ending = Ending(fence=zombie.fence, outcome=Succeeded(result="too late"))
    answer = await proof_db.store.exchange([ending], "w1", ["nothing_here"], 5)
    return answer.verdicts != [Verdict.STALE]


async def parks(proof_db: ProofDatabase, zombie: Claimed) -> bool:
    return await proof_db.store.park(
        [Parking(fence=zombie.fence, state={"query": 8}, wake_in=1)]
    ) == [True]


async def releases(proof_db: ProofDatabase, zombie: Claimed) -> bool:
    return await proof_db.store.release([Release(fence=zombie.fence, reason="too late")]) == [True]


async def shows_progress(proof_db: ProofDatabase, zombie: Claimed) -> bool:
    return await proof_db.store.progress(
        [ProgressUpdate(fence=zombie.fence, progress={"rows": 1})]
    ) == [True]


async def renews(proof_db: ProofDatabase, zombie: Claimed) -> bool:
    renewal = await proof_db.store.renew(beat(zombie.fence))
    return zombie.fence not in (*renewal.lost, *renewal.cancelled)


async def writes_its_own_rows(proof_db: ProofDatabase, zombie: Claimed) -> bool:
    try:
        async with proof_db.store.fenced_transaction(zombie.fence) as tx:
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


async def a_zombie(proof_db: ProofDatabase) -> Claimed:
    await proof_db.empty()
    await proof_db.store.open_group(
        GroupSpec(name="g", deadline_in=None), [JobSpec(kind="plain", lock_key=LOCK)]
    )
    await proof_db.store.register(registration(SESSION))
    [zombie] = await proof_db.claim(session=SESSION)
    return zombie


def stale_count(proof_db: ProofDatabase) -> float:
    return proof_db.store.metrics.registry.get_sample_value("penstock_stale_attempts_total") or 0


@pytest.mark.parametrize("write", LATE_WRITES)
async def test_a_zombie_changes_nothing_when_it(proof_db: ProofDatabase, write: str) -> None:
    await try_late(proof_db, write)


async def test_a_zombie_changes_nothing_on_the_oldest_server_either(
    old_stand: ProofDatabase,
) -> None:
    for write in LATE_WRITES:
        await try_late(old_stand, write)


async def try_late(proof_db: ProofDatabase, write: str) -> None:
    for lose in LOSSES:
        zombie = await a_zombie(proof_db)
        await lose(proof_db, zombie)
        before, counted = await proof_db.dump(), stale_count(proof_db)
        with capture_logs() as logs:
            taken = await LATE_WRITES[write](proof_db, zombie)
        pair = (write, lose)
        assert await proof_db.dump() == before, f"{write} after {lose.__name__}"
        assert taken == (pair in OWN_HAND), f"{write} after {lose.__name__}"
        events = [e for e in logs if e["event"] == "stale_attempt"]
        expected = 0 if pair in OWN_HAND or pair == CANCELLED_RENEWAL else 1
        assert (len(events), stale_count(proof_db) - counted) == (expected, expected), (
            f"{write} after {lose.__name__}"
        )
        assert all(e["attempt_id"] == str(zombie.fence.attempt_id) for e in events)


@pytest.mark.parametrize("write", LATE_WRITES)
async def test_a_zombie_frees_no_lock_when_it(proof_db: ProofDatabase, write: str) -> None:
    """Whoever holds the lock by then, the same attempt or another job, holds it still."""
    for lose in LOSSES:
        zombie = await a_zombie(proof_db)
        await lose(proof_db, zombie)
        if lose is cancelled:
            await proof_db.add(NEXT)
        await LATE_WRITES[write](proof_db, zombie)
        with pytest.raises(ResourceLocked):
            await proof_db.add(NEXT)


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
