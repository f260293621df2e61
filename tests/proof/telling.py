"""How a story is told twice: to the kernel and to its model, with a comparison after each
sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from penstock.jobs.model import Ending, JobSpec, Succeeded
from penstock.kit.errors import PenstockError
from tests.proof.invariants import broken
from tests.proof.lines import NEWBORN, lines_of_model, lines_of_tables
from tests.proof.model import Model

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Sequence

    from penstock.jobs.gates import Fired
    from penstock.jobs.model import Fence
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Tx
    from tests.proof.model import Job
    from tests.proof.proof_db import ProofDatabase

T = TypeVar("T")
QUEUES = ["default", "other"]
CALM = 1.1
HURRIED = 0.3
"""Seconds of pace: a calm claim looks at the whole queue, a hurried one may begin at its mark; both
promote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A spec without its tag and group."""

    kind: str
    queue: str | None = None
    priority: int | None = None
    run_in: int | None = None
    deadline_in: int | None = None
    unique_key: str | None = None
    lock_key: str | None = None

    def spec(self, tag: str, group_id: int | None) -> JobSpec:
        return JobSpec(
            kind=self.kind,
            payload={"tag": tag},
            queue=self.queue,
            priority=self.priority,
            run_in=span(self.run_in),
            deadline_in=span(self.deadline_in),
            unique_key=self.unique_key,
            lock_key=self.lock_key,
            group_id=group_id,
        )


def span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _seldom(*values: T) -> st.SearchStrategy[T | None]:
    return st.sampled_from([None, None, None, *values])


KINDS = st.sampled_from(["plain", "plain", "once", "brief", "remote"])
DRAFTS = st.builds(
    Draft,
    kind=KINDS,
    queue=_seldom("other"),
    priority=_seldom(0, 9),
    run_in=_seldom(0, 5, 90),
    deadline_in=_seldom(20, 100),
    unique_key=_seldom("u1", "u2"),
    lock_key=_seldom("l1", "l2"),
)
SIMPLE = st.builds(Draft, kind=KINDS, run_in=_seldom(5))
STORES = st.integers(0, 1)
WHICH = st.integers(0, 999)
ENDS = st.sampled_from(["well", "badly", "again", "spawning", "spawning into the group"])


class Pace:
    """Stands in for `time` in the exchange."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at


@dataclass(slots=True)
class World:
    """What all stories share: a loop, a database, the pace, and a count of sentences."""

    runner: asyncio.Runner
    proof_db: ProofDatabase
    pace: Pace
    sentences: int = 0


class Telling(RuleBasedStateMachine):
    """What every rule needs; the rules themselves are in `machine`."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.proof_db = self.world.proof_db
        self.model = Model()
        self.tags = 0
        self.first_id = self.last_id = 0
        self.promised: dict[str, int] = {}
        self.run(self._start())

    def run(self, coroutine: Coroutine[object, object, T]) -> T:
        return self.world.runner.run(coroutine)

    async def _start(self) -> None:
        await self.proof_db.empty()
        self.last_id = self.first_id = await self.proof_db.count_jobs_from_here()
        self.stores = [self.open_store(), self.open_store()]

    def open_store(self) -> PgJobStore:
        store = self.proof_db.another_store()
        store.gates.handle("fragile", self._gate)
        return store

    async def _gate(self, tx: Tx, fired: Fired) -> None:
        if self.model.handlers_fail:
            raise RuntimeError("a handler with a bug")

    @invariant()
    def model_and_tables_agree(self) -> None:
        self.world.sentences += 1
        self.run(self._compare())

    async def _compare(self) -> None:
        await self.name_the_newborn()
        tables, model = await lines_of_tables(self.proof_db), lines_of_model(self.model)
        assert tables == model, "\n".join(
            ["tables:", *sorted(tables - model), "model:", *sorted(model - tables)]
        )
        assert await broken(self.proof_db.eye) == []

    async def name_the_newborn(self) -> None:
        """Give the model's new jobs the numbers and places that the kernel chose for them."""
        unborn = {job.tag: job for job in self.model.jobs if not job.job_id}
        for row in await self.proof_db.eye.fetch(NEWBORN, self.last_id):
            self.last_id = max(self.last_id, row["job_id"])
            job = unborn.pop(row["tag"], None)
            assert job is not None, f"the kernel made {row['tag']!r} of its own accord"
            job.job_id, job.order_key = row["job_id"], row["order_key"]
            assert self.promised.get(job.tag, job.job_id) == job.job_id, (
                f"{job.tag} was promised another number"
            )
            place = job.order_key - job.base_key - (job.job_id - self.first_id) * 100
            assert job.over or 0 < place <= 100, f"{job.tag} stands at the wrong place"
        assert not unborn, f"the kernel did not make {sorted(unborn)}"

    def spec(self, draft: Draft, group_id: int | None = None) -> JobSpec:
        self.tags += 1
        return draft.spec(f"t{self.tags}", group_id)

    def answer_or(self, code: str | None, question: Coroutine[object, object, T]) -> T | None:
        """The answer; or None when it is the refusal that the model foretold."""
        answer, error = None, None
        try:
            answer = self.run(question)
        except PenstockError as e:
            error = e.code
        assert error == code, f"the answer was {error}, foretold was {code}"
        return answer

    def pick(self, pool: Sequence[T], which: int) -> T:
        return pool[which % len(pool)]

    def held_or_old(self, which: int, old: bool) -> tuple[Job, Fence]:
        return self.pick(self.model.lapsed if old and self.model.lapsed else self.model.held, which)

    def teardown(self) -> None:
        """At the end of a story: with a worker alive every job ends and every gate fires."""
        self.run(self._live_happily())

    async def _live_happily(self) -> None:
        store = self.open_store()
        self.model.handlers_fail = False
        for _ in range(20):
            await self.proof_db.advance(601)
            await store.reap()
            self.world.pace.at += CALM
            claimed = await store.claim("last", QUEUES, 1000)
            await store.finish([Ending(fence=c.fence, outcome=Succeeded()) for c in claimed])
            if not await self.proof_db.left():
                break
        assert await self.proof_db.left() == 0, "something never ended"
        assert await broken(self.proof_db.eye) == []
