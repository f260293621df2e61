"""Every verb that locks several rows, beside every other: whatever the order, nobody deadlocks.

All actors work on the same few jobs: two members of a group that run and hold a lock each, one more
that runs, and two that are ready, one of them with a lock. The verbs name these jobs in opposite
orders, end them, put them back, take them over and ask for each other's locks.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

import pytest

from penstock.jobs.model import (
    Ending,
    Failed,
    GroupSpec,
    JobSpec,
    Parking,
    ProgressUpdate,
    Release,
    Succeeded,
)
from penstock.kit.errors import PenstockError
from tests.proof.proof_db import DEPTH, LEASE, beat, registration
from tests.proof.scripts import BADLY, PLAIN, WELL, cancel, check, enqueue, reap, register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.jobs.model import Claimed, Outcome
    from tests.proof.explorer import Explorer, Script
    from tests.proof.proof_db import ProofDatabase

Verb: TypeAlias = "Callable[[Jobs], Script]"
BEFORE, AFTER = UUID(int=1), UUID(int=2)
AGAIN = Failed(error={"code": "BAD"}, retry_in=0.0)


class Jobs:
    """`a` and `b` run, are members of one group and hold the locks a and b; `other` runs."""

    def __init__(self, group_id: int, running: Sequence[Claimed]) -> None:
        self.group_id = group_id
        self.a, self.b, self.other = running

    def locked(self, key: str, *, joins: bool = True) -> JobSpec:
        return JobSpec(kind="plain", lock_key=key, group_id=self.group_id if joins else None)


async def jobs_on(proof_db: ProofDatabase) -> Jobs:
    """Besides those that run, one is ready that holds the lock c, and one without a lock."""
    await proof_db.store.register(registration(BEFORE))
    members = [JobSpec(kind="plain", lock_key=key) for key in "ab"]
    group_id, _ = await proof_db.store.open_group(GroupSpec(name="g"), members)
    await proof_db.add(PLAIN)
    running = sorted(
        await proof_db.claim(limit=3, session=BEFORE), key=lambda claimed: claimed.job_id
    )
    await proof_db.add(JobSpec(kind="plain", lock_key="c"))
    await proof_db.add(PLAIN)
    await proof_db.advance(LEASE + 1)
    return Jobs(group_id, running)


def exchange(limit: int, *ends: tuple[Claimed, Outcome]) -> Script:
    endings = [Ending(fence=claimed.fence, outcome=outcome) for claimed, outcome in ends]
    return lambda store, _db: store.exchange(endings, "next", ["default"], limit)


def spawning(*specs: JobSpec) -> Succeeded:
    return Succeeded(spawn=list(specs))


def park(*claimed: Claimed) -> Script:
    parkings = [Parking(fence=c.fence, state={}, wake_in=5) for c in claimed]
    return lambda store, _db: store.park(parkings)


def release(*claimed: Claimed) -> Script:
    releases = [Release(fence=c.fence, reason="SIGTERM") for c in claimed]
    return lambda store, _db: store.release(releases)


def progress(*claimed: Claimed) -> Script:
    updates = [ProgressUpdate(fence=c.fence, progress={"rows": 1}) for c in claimed]
    return lambda store, _db: store.progress(updates)


def renew(*claimed: Claimed) -> Script:
    fences = [c.fence for c in claimed]
    return lambda store, _db: store.renew(beat(*fences, session=BEFORE))


VERBS: Mapping[str, Verb] = {
    "cancel": lambda jobs: cancel(jobs.b.job_id),
    "end_and_claim": lambda jobs: exchange(2, (jobs.other, WELL), (jobs.b, WELL)),
    "end_and_take_lock_a": lambda jobs: exchange(
        2, (jobs.b, spawning(jobs.locked("a"))), (jobs.other, WELL)
    ),
    "end_and_take_lock_b": lambda jobs: exchange(
        2, (jobs.a, spawning(jobs.locked("b", joins=False)))
    ),
    "end_and_take_lock_c": lambda jobs: exchange(
        2, (jobs.other, spawning(jobs.locked("c"))), (jobs.a, WELL)
    ),
    "enqueue_with_locks": lambda jobs: enqueue(
        jobs.locked("c"), jobs.locked("b"), jobs.locked("a", joins=False)
    ),
    "fail_or_retry": lambda jobs: exchange(
        1, (jobs.other, AGAIN), (jobs.b, BADLY), (jobs.a, AGAIN)
    ),
    "park": lambda jobs: park(jobs.other, jobs.b, jobs.a),
    "progress": lambda jobs: progress(jobs.b, jobs.a, jobs.other),
    "reap": lambda _jobs: reap(),
    "register": lambda _jobs: register(AFTER),
    "release": lambda jobs: release(jobs.other, jobs.b, jobs.a),
    "renew": lambda jobs: renew(jobs.other, jobs.b, jobs.a),
}
NEVER_WAIT = {"reap", "renew"}
"""They skip what others hold, so three at once show nothing that two do not."""
TAKE_LOCKS = {
    "end_and_take_lock_a",
    "end_and_take_lock_b",
    "end_and_take_lock_c",
    "enqueue_with_locks",
}
THREE = [
    three
    for three in combinations(sorted(VERBS.keys() - NEVER_WAIT), 3)
    if DEPTH > 1 or ("cancel" in three and len(TAKE_LOCKS.intersection(three)) == 2)
]


async def walk(explorer: Explorer, names: Sequence[str], switches: int) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        jobs = await jobs_on(proof_db)
        return {actor: VERBS[name](jobs) for actor, name in zip("ABC", names, strict=False)}

    async for order in explorer.walk(arrange, switches=switches):
        for result in order.results.values():
            assert not isinstance(result, Exception) or isinstance(result, PenstockError), (
                f"{order}"
            )
        await check(proof_db, order)


@pytest.mark.parametrize(
    "names", [(n, n) for n in VERBS] + list(combinations(VERBS, 2)), ids="-".join
)
async def test_two_verbs_do_not_deadlock(explorer: Explorer, names: Sequence[str]) -> None:
    await walk(explorer, names, switches=1 if DEPTH == 1 else 4)


@pytest.mark.parametrize("names", THREE, ids="-".join)
async def test_three_verbs_do_not_deadlock(explorer: Explorer, names: Sequence[str]) -> None:
    await walk(explorer, names, switches=1 if DEPTH == 1 else 2)
