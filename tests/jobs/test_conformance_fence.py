"""The zombie matrix: every way to lose a job, and every verb that a worker which did not notice may
still call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.jobs.model import Claimed, JobSpec, Parking, ProgressUpdate, Release
from tests.jobs.conformance import RETRYING, STALE, Subject, beat, done, failed, nobody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def lapsed(subject: Subject, claimed: Claimed) -> None:
    await subject.lapse()


async def taken_over(subject: Subject, claimed: Claimed) -> None:
    await subject.lapse()
    await subject.claim_one(worker="heir")


async def finished_by_another(subject: Subject, claimed: Claimed) -> None:
    await subject.lapse()
    await subject.store.finish([done(await subject.claim_one(worker="heir"), "the heir's")])


async def cancelled(subject: Subject, claimed: Claimed) -> None:
    await subject.store.cancel(claimed.job_id, actor="ann")


async def released_and_taken(subject: Subject, claimed: Claimed) -> None:
    await subject.store.release([Release(fence=claimed.fence, reason="")])
    await subject.claim_one(worker="heir")


async def parked_and_taken(subject: Subject, claimed: Claimed) -> None:
    await subject.store.park([Parking(fence=claimed.fence, state="the first's", wake_in=0)])
    await subject.claim_one(worker="heir")


LOSSES: list[Callable[[Subject, Claimed], Awaitable[None]]] = [
    lapsed,
    taken_over,
    finished_by_another,
    cancelled,
    released_and_taken,
    parked_and_taken,
]


@pytest.mark.parametrize("lose", LOSSES, ids=lambda f: f.__name__)
async def test_a_zombie_changes_nothing_and_is_told_so(
    subject: Subject, lose: Callable[[Subject, Claimed], Awaitable[None]]
) -> None:
    zombie = await subject.held()
    await lose(subject, zombie)
    before = await subject.plane.job(zombie.job_id)
    fence = zombie.fence

    assert await subject.store.finish(
        [done(zombie, "the zombie's", spawn=[JobSpec(kind="elsewhere")])]
    ) == [STALE]
    assert await subject.store.finish([failed(zombie)]) == [STALE]
    assert await subject.store.finish([failed(zombie, retry_in=1)]) == [STALE]
    assert await subject.store.progress([ProgressUpdate(fence=fence, progress="the zombie's")]) == [
        False
    ]
    exchanged = await subject.store.exchange([done(zombie)], "w1", ["nothing-here"], 1)
    assert list(exchanged.verdicts) == [STALE]
    if lose is not parked_and_taken:
        assert await subject.store.park(
            [Parking(fence=fence, state="the zombie's", wake_in=0)]
        ) == [False]
    if lose is not released_and_taken:
        assert await subject.store.release([Release(fence=fence, reason="the zombie's")]) == [False]

    assert await subject.plane.job(zombie.job_id) == before
    assert await subject.claim(10, queue="other") == []


async def test_a_beat_says_what_was_lost_and_what_was_cancelled(subject: Subject) -> None:
    for _ in range(3):
        await subject.add()
    mine, gone, stopped = await subject.claim(3)
    await subject.store.cancel(stopped.job_id, actor="ann")
    await subject.clock.advance(50)
    await subject.store.renew(beat(mine.fence))
    await subject.clock.advance(50)
    await subject.plane.reap()
    renewal = await subject.store.renew(beat(mine.fence, gone.fence, stopped.fence))
    assert list(renewal.lost) == [gone.fence]
    assert list(renewal.cancelled) == [stopped.fence]


async def test_a_beat_does_not_extend_what_another_holds(subject: Subject) -> None:
    zombie = await subject.held()
    await subject.lapse()
    heir = await subject.claim_one(worker="heir")
    before = (await subject.plane.job(heir.job_id)).lease_until
    await subject.clock.advance(20)
    assert list((await subject.store.renew(beat(zombie.fence))).lost) == [zombie.fence]
    assert (await subject.plane.job(heir.job_id)).lease_until == before


async def test_a_fence_that_no_claim_made_opens_nothing(subject: Subject) -> None:
    claimed = await subject.held()
    forged = nobody(claimed.job_id)
    assert await subject.store.progress([ProgressUpdate(fence=forged, progress=1)]) == [False]
    assert await subject.store.release([Release(fence=forged, reason="")]) == [False]
    assert await subject.store.park([Parking(fence=nobody(999), state=None, wake_in=0)]) == [False]


async def test_a_write_whose_reply_was_lost_may_be_repeated(subject: Subject) -> None:
    parked, released, retried = [await subject.held() for _ in range(3)]
    for _ in range(2):
        assert await subject.store.park([Parking(fence=parked.fence, state=1, wake_in=60)]) == [
            True
        ]
        assert await subject.store.release([Release(fence=released.fence, reason="")]) == [True]
        [verdict] = await subject.store.finish([failed(retried, retry_in=60)])
        assert verdict.accepted
    assert verdict is RETRYING


async def test_stale_and_good_writes_share_a_batch_and_each_gets_its_own_answer(
    subject: Subject,
) -> None:
    good, stale = [await subject.held() for _ in range(2)]
    await subject.store.cancel(stale.job_id, actor="ann")
    updates = [ProgressUpdate(fence=f, progress=1) for f in (stale.fence, good.fence, nobody(999))]
    assert await subject.store.progress(updates) == [False, True, False]
