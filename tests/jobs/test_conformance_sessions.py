"""A process that starts under the name of an earlier one: what that one held is taken off it, once
and for good."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from penstock.jobs.model import (
    Beat,
    Claimed,
    GroupSpec,
    JobSpec,
    Parking,
    ProgressUpdate,
    Registered,
    Registration,
    Release,
    Status,
)
from penstock.kit.errors import Conflict, InvalidInput, StaleAttempt
from tests.jobs.conformance import DONE, STALE, Subject, beat, done, failed

if TYPE_CHECKING:
    from penstock.jobs.model import Renewal


class Process:
    """A worker process as the kernel sees it: a name, and a session of its own."""

    def __init__(self, subject: Subject, name: str = "w1") -> None:
        self._subject = subject
        self.name = name
        self.session = uuid4()

    async def start(self) -> Registered:
        return await self._subject.store.register(
            Registration(
                worker=self.name, session=self.session, queues=["default"], slots=4, version="0"
            )
        )

    async def claim(self, limit: int = 1) -> list[Claimed]:
        return await self._subject.store.claim(self.name, ["default"], limit, session=self.session)

    async def claim_one(self) -> Claimed:
        [claimed] = await self.claim()
        return claimed

    async def beat(self, *attempts: Claimed) -> Renewal:
        return await self._subject.store.renew(
            Beat(
                worker=self.name,
                session=self.session,
                queues=["default"],
                slots=4,
                version="0",
                held=[a.fence for a in attempts],
            )
        )


async def started(subject: Subject, name: str = "w1") -> Process:
    process = Process(subject, name)
    await process.start()
    return process


async def test_the_first_process_of_a_name_takes_nothing(subject: Subject) -> None:
    other = await started(subject, "w2")
    await subject.add()
    theirs = await other.claim_one()
    first = Process(subject)
    assert await first.start() == Registered()
    assert sorted(await subject.workers()) == ["w1", "w2"]
    assert (await subject.plane.job(theirs.job_id)).status is Status.RUNNING


async def test_a_process_that_starts_again_has_the_jobs_of_its_predecessor_back_at_once(
    subject: Subject,
) -> None:
    killed = await started(subject)
    jobs = [await subject.add(lock_key="table:orders"), await subject.add()]
    await killed.claim(2)
    again = Process(subject)
    assert await again.start() == Registered(requeued=2)
    claimed = await again.claim(2)
    assert [(c.job_id, c.attempt_no) for c in claimed] == [(job, 2) for job in jobs]
    [first, _] = (await subject.plane.job(jobs[0])).attempts
    assert (first.how, first.worker) == ("lapsed", "w1")
    assert first.detail == {"reason": "Another process started under the name of its worker."}


async def test_what_a_superseded_process_writes_changes_nothing(subject: Subject) -> None:
    old = await started(subject)
    await subject.add()
    zombie = await old.claim_one()
    new = await started(subject)
    heir = await new.claim_one()
    before = await subject.plane.job(heir.job_id)

    assert await subject.store.finish(
        [done(zombie, "the zombie's", spawn=[JobSpec(kind="elsewhere")])]
    ) == [STALE]
    assert await subject.store.finish([failed(zombie, retry_in=1)]) == [STALE]
    assert await subject.store.progress([ProgressUpdate(fence=zombie.fence, progress=1)]) == [False]
    assert await subject.store.park([Parking(fence=zombie.fence, state=1, wake_in=0)]) == [False]
    assert await subject.store.release([Release(fence=zombie.fence, reason="")]) == [False]
    with pytest.raises(StaleAttempt):
        async with subject.plane.fenced_transaction(zombie.fence):
            raise AssertionError("a stale fence opens nothing")

    assert await subject.plane.job(heir.job_id) == before
    assert await subject.store.finish([done(heir)]) == [DONE]


async def test_a_superseded_process_gets_no_job_until_it_has_heard_so(subject: Subject) -> None:
    """A request of a process that died may still wait for a job."""
    old = await started(subject)
    await subject.add()
    lost = await old.claim_one()
    assert not (await old.beat(lost)).superseded
    new = await started(subject)
    assert await old.claim() == []
    exchanged = await subject.store.exchange([], old.name, ["default"], 1, session=old.session)
    assert list(exchanged.claimed) == []

    with capture_logs() as logs:
        renewal = await old.beat(lost)
    assert (renewal.superseded, list(renewal.lost)) == (True, [lost.fence])
    assert [(e["log_level"], e["worker"]) for e in logs if e["event"] == "worker_name_shared"] == [
        ("error", "w1")
    ]
    assert not (await new.beat()).superseded
    assert len(await old.claim()) == 1


async def test_processes_that_share_a_name_do_not_take_each_others_work_in_turns(
    subject: Subject,
) -> None:
    old = await started(subject)
    new = await started(subject)
    await old.beat()
    for _ in range(2):
        await subject.add()
    theirs, ours = await old.claim_one(), await new.claim_one()
    for _ in range(3):
        with pytest.raises(Conflict, match="w1"):
            await old.start()
        assert await new.start() == Registered()
        for process, claimed in ((old, theirs), (new, ours)):
            assert list((await process.beat(claimed)).lost) == []
    assert await subject.store.finish([done(theirs), done(ours)]) == [DONE, DONE]


async def test_a_name_that_is_known_to_be_shared_is_registered_without_a_take_over(
    subject: Subject,
) -> None:
    old = await started(subject)
    current = await started(subject)
    await old.beat()
    await subject.add()
    running = await current.claim_one()
    newest = Process(subject)
    assert await newest.start() == Registered(shared=True)
    renewal = await current.beat(running)
    assert (renewal.superseded, list(renewal.lost)) == (True, [])
    assert await subject.store.finish([done(running)]) == [DONE]

    await subject.add()
    await newest.claim_one()
    await subject.clock.advance(601)
    assert await Process(subject).start() == Registered(requeued=1)


async def test_a_registration_that_is_repeated_changes_nothing(subject: Subject) -> None:
    process = await started(subject)
    await subject.add()
    claimed = await process.claim_one()
    assert await process.start() == Registered()
    assert await subject.store.finish([done(claimed)]) == [DONE]


async def test_a_process_that_left_in_order_is_over_and_so_is_its_session(subject: Subject) -> None:
    first = await started(subject)
    await subject.add()
    unwritten = await first.claim_one()
    await subject.store.farewell(first.name, first.session)
    assert await subject.workers() == []
    with pytest.raises(Conflict, match="farewell"):
        await first.start()
    assert await first.claim() == []
    assert not (await first.beat()).superseded
    assert await subject.workers() == []
    assert (await subject.plane.job(unwritten.job_id)).status is Status.RUNNING
    assert await Process(subject).start() == Registered(requeued=1)


async def test_what_an_older_control_plane_claimed_for_another_is_left_alone(
    subject: Subject,
) -> None:
    """It does not know of sessions, so the one of an earlier attempt stays on the row."""
    old = await started(subject)
    await subject.add()
    claimed = await subject.claim_one(worker="w2")
    await subject.clock.execute(
        "UPDATE penstock.live SET session = $1 WHERE status = 1", old.session
    )
    assert await Process(subject).start() == Registered()
    assert await subject.store.finish([done(claimed)]) == [DONE]


async def test_attempts_without_a_session_are_left_to_their_lease(subject: Subject) -> None:
    """Who claims without registering may use any name."""
    await subject.add()
    claimed = await subject.claim_one(worker="w1")
    assert await Process(subject).start() == Registered()
    assert await subject.store.finish([done(claimed)]) == [DONE]


async def test_a_job_without_attempts_left_fails_and_so_does_its_group(subject: Subject) -> None:
    killed = await started(subject)
    members = [JobSpec(kind="work", max_attempts=1), JobSpec(kind="work")]
    follow = JobSpec(kind="elsewhere", payload={"after": True})
    await subject.plane.open_group(GroupSpec(name="g", on_failure=[follow]), members)
    poison = await killed.claim_one()
    assert await Process(subject).start() == Registered(failed=1)
    view = await subject.plane.job(poison.job_id)
    assert (view.status, view.error["code"]) == (Status.FAILED, "ATTEMPTS_USED_UP")
    [opened] = await subject.claim(queue="other")
    assert opened.payload == {"after": True}


async def test_what_was_claimed_while_a_successor_registered_is_taken_by_the_next_one(
    subject: Subject,
) -> None:
    """A claim that ran beside the registration belongs to a session which is over, and is fenced as
    any other."""
    old = await started(subject)
    await subject.add()
    await started(subject)
    late = await _claimed_too_late(subject, old)
    assert await Process(subject).start() == Registered(requeued=1)
    assert await subject.store.finish([done(late)]) == [STALE]


async def _claimed_too_late(subject: Subject, old: Process) -> Claimed:
    """As a claim whose statement began before the registration was there to be seen."""
    claimed = await subject.claim_one(worker=old.name)
    await subject.clock.execute(
        "UPDATE penstock.live SET session = $1 WHERE status = 1", old.session
    )
    return claimed


async def test_a_session_has_one_name(subject: Subject) -> None:
    process = await started(subject)
    process.name = "w2"
    with pytest.raises(InvalidInput, match="w1"):
        await process.start()


@pytest.mark.parametrize(
    "change", [{"worker": ""}, {"worker": "a b"}, {"queues": ["no good"]}, {"version": "x" * 501}]
)
async def test_a_registration_is_checked(subject: Subject, change: dict[str, object]) -> None:
    values = {
        "worker": "w1",
        "session": uuid4(),
        "queues": ["default"],
        "slots": 4,
        "version": "0",
    } | change
    with pytest.raises(InvalidInput):
        await subject.store.register(Registration(**values))


async def test_an_unregistered_process_may_beat_as_before(subject: Subject) -> None:
    renewal = await subject.store.renew(beat())
    assert not renewal.superseded
    assert await subject.workers() == ["w1"]


async def test_sessions_are_forgotten_a_week_after_their_end(subject: Subject) -> None:
    old = await started(subject)
    new = await started(subject)
    await subject.clock.advance(6 * 86_400)
    await new.beat()
    await subject.forget()
    assert sorted(await subject.sessions()) == sorted([old.session, new.session])
    await subject.clock.advance(2 * 86_400)
    await new.beat()
    await subject.forget()
    assert await subject.sessions() == [new.session]
