"""Every order in which two or three want to decide about one attempt: one fate, agreed upon, and no
deadlock."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from penstock.jobs.model import (
    Cancelled,
    Ending,
    Failed,
    JobSpec,
    Outcome,
    Parking,
    ProgressUpdate,
    Reaped,
    Registered,
    Release,
    Renewal,
    Succeeded,
    Verdict,
)
from penstock.kit.errors import Conflict, InvalidState, StaleAttempt
from penstock.kit.sqlfile import parse
from tests.proof.proof_db import LEASE, SESSION, beat, registration
from tests.proof.scripts import (
    AFTER,
    BADLY,
    FEW,
    PLAIN,
    WELL,
    cancel,
    check,
    claim,
    count,
    finish,
    reap,
    register,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from penstock.jobs.store import PgJobStore
    from tests.proof.explorer import Explorer, Script
    from tests.proof.tapped import TappedDb


async def test_two_claims_never_take_one_job(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN, PLAIN, PLAIN)
        return {"A": claim("a", 2), "B": claim("b", 2)}

    async for order in explorer.walk(arrange):
        taken = [
            c.job_id
            for result in order.results.values()
            if isinstance(result, list)
            for c in result
        ]
        assert len(taken) == len(set(taken)), f"{order}"
        await check(proof_db, order)


@pytest.mark.parametrize("outcome", [WELL, BADLY, Failed(error={}, retry_in=5)])
async def test_a_finish_and_the_reaper_agree_on_one_fate(
    explorer: Explorer, outcome: Outcome
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(JobSpec(kind="once"))
        claimed = await proof_db.claim_one()
        await proof_db.advance(LEASE + 1)
        return {"A": finish(claimed, outcome=outcome), "B": reap()}

    async for order in explorer.walk(arrange):
        [verdict], reaped = order.results["A"], order.results["B"]
        assert isinstance(reaped, Reaped)
        assert (verdict is Verdict.STALE) == (reaped.failed == 1), f"{order}"
        await check(proof_db, order)


async def test_a_finish_and_a_cancel_agree_on_one_fate(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN)
        claimed = await proof_db.claim_one()
        return {"A": finish(claimed), "B": cancel(claimed.job_id)}

    async for order in explorer.walk(arrange):
        [verdict], cancelled = order.results["A"], order.results["B"]
        assert isinstance(cancelled, Cancelled | InvalidState), f"{order}"
        assert (verdict is Verdict.STALE) == isinstance(cancelled, Cancelled), f"{order}"
        await check(proof_db, order)


async def test_a_renewal_and_the_reaper_agree_on_the_holder(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN)
        claimed = await proof_db.claim_one()
        await proof_db.advance(LEASE + 1)
        return {"A": lambda store, _db: store.renew(beat(claimed.fence)), "B": reap()}

    async for order in explorer.walk(arrange):
        renewal, reaped = order.results["A"], order.results["B"]
        assert isinstance(renewal, Renewal)
        assert isinstance(reaped, Reaped)
        if renewal.lost:
            assert reaped.requeued == 1, f"{order}"
        await check(proof_db, order)


async def test_a_park_and_a_cancel_agree_on_one_fate(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(JobSpec(kind="remote"))
        claimed = await proof_db.claim_one()
        parking = Parking(fence=claimed.fence, state={"query": 7}, wake_in=5)
        return {"A": lambda store, _db: store.park([parking]), "B": cancel(claimed.job_id)}

    async for order in explorer.walk(arrange):
        assert isinstance(order.results["B"], Cancelled), f"{order}"
        assert await count(proof_db, "sweep") == (1 if order.results["A"] == [True] else 0), (
            f"{order}"
        )
        await check(proof_db, order)


async def test_a_release_and_a_cancel_agree_on_one_fate(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN)
        claimed = await proof_db.claim_one()
        release = Release(fence=claimed.fence, reason="SIGTERM")
        return {
            "A": lambda store, _db: store.release([release]),
            "B": cancel(claimed.job_id),
            "C": claim("c"),
        }

    async for order in explorer.walk(arrange, switches=FEW):
        assert isinstance(order.results["B"], Cancelled), f"{order}"
        await check(proof_db, order)


async def test_a_job_that_comes_due_is_claimed_or_cancelled(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        [job_id] = await proof_db.add(JobSpec(kind="plain", run_in=timedelta(seconds=5)))
        await proof_db.advance(6)
        return {"A": claim("a"), "B": cancel(job_id)}

    async for order in explorer.walk(arrange):
        assert isinstance(order.results["B"], Cancelled), f"{order}"
        await check(proof_db, order)


@pytest.mark.parametrize(
    "outcome", [WELL, BADLY, Failed(error={}, retry_in=5), Succeeded(spawn=[AFTER])]
)
async def test_a_request_that_is_sent_twice_at_once_ends_its_jobs_once(
    explorer: Explorer, outcome: Outcome
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN, PLAIN)
        left, right = await proof_db.claim(limit=2)
        return {
            "A": finish(left, right, outcome=outcome),
            "B": finish(right, left, outcome=outcome),
        }

    async for order in explorer.walk(arrange):
        answers = sorted(order.results.values())
        again = isinstance(outcome, Failed) and outcome.retry_in is not None
        first, second = [Verdict.RETRYING] * 2 if again else [Verdict.DONE, Verdict.REPEATED]
        assert answers == [[first, first], [second, second]], f"{order}"
        assert await count(proof_db, "once") == (
            2 if isinstance(outcome, Succeeded) and outcome.spawn else 0
        )
        await check(proof_db, order)


async def test_an_exchange_that_is_sent_twice_at_once_claims_no_job_twice(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(*[PLAIN] * 4)
        ending = Ending(fence=(await proof_db.claim_one()).fence, outcome=WELL)

        def script(store: PgJobStore, _db: TappedDb) -> Awaitable[object]:
            return store.exchange([ending], "w", ["default"], 2)

        return {"A": script, "B": script}

    async for order in explorer.walk(arrange):
        taken = [c.job_id for r in order.results.values() for c in r.claimed]
        assert len(taken) == len(set(taken)) == 3, f"{order}"
        await check(proof_db, order)


async def test_progress_and_ends_of_the_same_jobs_do_not_deadlock(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN, PLAIN, PLAIN)
        claimed = await proof_db.claim(limit=3)
        updates = [ProgressUpdate(fence=c.fence, progress={"rows": 1}) for c in reversed(claimed)]
        endings = [
            Ending(fence=claimed[0].fence, outcome=WELL),
            Ending(fence=claimed[1].fence, outcome=BADLY),
            Ending(fence=claimed[2].fence, outcome=Failed(error={}, retry_in=5)),
        ]
        return {
            "A": lambda store, _db: store.progress(updates),
            "B": lambda store, _db: store.finish(endings),
        }

    async for order in explorer.walk(arrange):
        await check(proof_db, order)


async def test_a_fenced_transaction_is_whole_or_refused_beside_a_cancel_and_the_reaper(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db
    await proof_db.eye.execute(
        "CREATE TABLE IF NOT EXISTS penstock.proof_note (job_id bigint, note text)"
    )
    write = parse("note", "INSERT INTO penstock.proof_note VALUES (:job_id, :note)")

    async def arrange() -> Mapping[str, Script]:
        await proof_db.eye.execute("DELETE FROM penstock.proof_note")
        await proof_db.add(PLAIN)
        claimed = await proof_db.claim_one()
        await proof_db.advance(LEASE + 1)

        async def noting(store: PgJobStore, _db: TappedDb) -> str:
            async with store.fenced_transaction(claimed.fence) as tx:
                await tx.fetch(write, job_id=claimed.job_id, note="one")
                await tx.fetch(write, job_id=claimed.job_id, note="two")
            return "written"

        return {"A": noting, "B": cancel(claimed.job_id), "C": reap()}

    async for order in explorer.walk(arrange, switches=FEW):
        notes = await proof_db.eye.fetchval("SELECT count(*) FROM penstock.proof_note")
        assert notes == (2 if order.results["A"] == "written" else 0), f"{order}"
        assert order.results["A"] == "written" or isinstance(order.results["A"], StaleAttempt), (
            f"{order}"
        )
        assert isinstance(order.results["B"], Cancelled), f"{order}"
        await check(proof_db, order)


NEW = UUID(int=99)


@pytest.mark.parametrize("outcome", [WELL, BADLY, Failed(error={}, retry_in=5)])
async def test_a_finish_and_a_successor_agree_on_one_fate(
    explorer: Explorer, outcome: Outcome
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN, PLAIN)
        await proof_db.store.register(registration(SESSION))
        pair = await proof_db.claim(session=SESSION, limit=2)
        return {"A": finish(*reversed(pair), outcome=outcome), "B": register(NEW)}

    async for order in explorer.walk(arrange):
        verdicts, registered = order.results["A"], order.results["B"]
        assert isinstance(registered, Registered), f"{order}"
        assert [v is Verdict.STALE for v in verdicts] == [registered.requeued == 2] * 2, f"{order}"
        await check(proof_db, order)


async def test_a_beat_and_a_successor_agree_on_the_holder(explorer: Explorer) -> None:
    """A renewal that came first is overruled: the process that sent it is not there any more."""
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN, PLAIN)
        await proof_db.store.register(registration(SESSION))
        pair = await proof_db.claim(session=SESSION, limit=2)
        shown = beat(*(c.fence for c in pair), session=SESSION)
        return {"A": lambda store, _db: store.renew(shown), "B": register(NEW)}

    async for order in explorer.walk(arrange):
        renewal, registered = order.results["A"], order.results["B"]
        assert isinstance(renewal, Renewal)
        assert registered == Registered(requeued=2), f"{order}"
        assert bool(renewal.lost) <= renewal.superseded, f"{order}"
        await check(proof_db, order)


async def test_the_reaper_and_a_successor_take_an_attempt_once(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN, PLAIN)
        await proof_db.store.register(registration(SESSION))
        await proof_db.claim(session=SESSION, limit=2)
        await proof_db.advance(LEASE + 1)
        return {"A": reap(), "B": register(NEW)}

    async for order in explorer.walk(arrange):
        reaped, registered = order.results["A"], order.results["B"]
        assert isinstance(reaped, Reaped)
        assert isinstance(registered, Registered), f"{order}"
        assert reaped.requeued + registered.requeued == 2, f"{order}"
        await check(proof_db, order)


async def test_a_claim_beside_a_successor_is_given_or_refused_and_nothing_in_between(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN, PLAIN)
        await proof_db.store.register(registration(SESSION))
        await proof_db.claim(session=SESSION)
        return {"A": claim("w1", 1, session=SESSION), "B": register(NEW)}

    async for order in explorer.walk(arrange):
        assert isinstance(order.results["B"], Registered), f"{order}"
        assert order.results["B"].requeued >= 1, f"{order}"
        await check(proof_db, order)


async def test_of_several_processes_that_start_at_once_one_is_the_current_one(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db
    current = "SELECT count(*) FROM penstock.worker_session WHERE ended_at IS NULL"

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN)
        await proof_db.store.register(registration(SESSION))
        await proof_db.claim(session=SESSION)
        return {"A": register(UUID(int=1)), "B": register(UUID(int=2)), "C": register(UUID(int=1))}

    async for order in explorer.walk(arrange, switches=FEW):
        results = list(order.results.values())
        assert await proof_db.eye.fetchval(current) == 1, f"{order}"
        assert sum(r.requeued for r in results if isinstance(r, Registered)) == 1, f"{order}"
        assert all(isinstance(r, Registered | Conflict) for r in results), f"{order}"
        await check(proof_db, order)


async def test_a_farewell_and_a_successor_do_not_wait_in_a_circle(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.add(PLAIN)
        await proof_db.store.register(registration(SESSION))
        [unwritten] = await proof_db.claim(session=SESSION)
        shown = beat(unwritten.fence, session=SESSION)
        return {
            "A": lambda store, _db: store.farewell("w1", SESSION),
            "B": register(NEW),
            "C": lambda store, _db: store.renew(shown),
        }

    async for order in explorer.walk(arrange, switches=FEW):
        assert order.results["B"] == Registered(requeued=1), f"{order}"
        await check(proof_db, order)


async def test_a_heartbeat_on_its_way_does_not_put_back_a_worker_that_left(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.store.register(registration(SESSION))
        shown = beat(session=SESSION)
        return {
            "A": lambda store, _db: store.farewell("w1", SESSION),
            "B": lambda store, _db: store.renew(shown),
        }

    async for order in explorer.walk(arrange):
        assert await proof_db.eye.fetchval("SELECT count(*) FROM penstock.worker") == 0, f"{order}"
        await check(proof_db, order)
