"""Random stories, told to PostgreSQL and to a model in plain Python, which must agree after every sentence.

Two control planes take turns on one database. The clock is moved by a rule; the pace of the low-water marks and of
promotion moves with each claim, so a story is the same whenever it is told. A failing story is shrunk to its shortest
form and printed with what is needed to tell it again. `PENSTOCK_PROOF=deep` tells many more.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from penstock.jobs import exchange as exchange_module
from penstock.jobs.model import (
    Ending,
    Failed,
    Fence,
    GroupSpec,
    JobSpec,
    Outcome,
    Parking,
    ProgressUpdate,
    Release,
    Status,
    Succeeded,
)
from penstock.jobs.scheduler import Schedule, Scheduler, Schedules
from penstock.kit.errors import PenstockError, StaleAttempt
from penstock.kit.loop import LoopMetrics
from tests.proof.invariants import broken
from tests.proof.lines import NEWBORN, lines_of_model, lines_of_tables
from tests.proof.model import Group, Job, Model, next_minute
from tests.proof.stand import DEPTH, EPOCH, beat, stand_on

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    import pytest

    from penstock.jobs.gates import Fired
    from penstock.jobs.model import Claimed
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Tx
    from tests.proof.stand import Stand

T = TypeVar("T")
QUEUES = ["default", "other"]
CALM = 1.1
HURRIED = 0.3
"""Seconds of pace: a calm claim looks at the whole queue, a hurried one may begin at its mark; both promote."""


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
            run_in=_span(self.run_in),
            deadline_in=_span(self.deadline_in),
            unique_key=self.unique_key,
            lock_key=self.lock_key,
            group_id=group_id,
        )


def _span(seconds: int | None) -> timedelta | None:
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
    stand: Stand
    pace: Pace
    sentences: int = 0


class Kernel(RuleBasedStateMachine):
    world: World

    def __init__(self) -> None:
        super().__init__()
        self.stand = self.world.stand
        self.model = Model()
        self.tags = 0
        self.last_id = 0
        self.run(self._start())

    def run(self, coroutine: Coroutine[object, object, T]) -> T:
        return self.world.runner.run(coroutine)

    async def _start(self) -> None:
        await self.stand.empty()
        self.last_id = await self.stand.eye.fetchval(
            "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM penstock.job_id"
        )
        self.stores = [self._open(), self._open()]

    def _open(self) -> PgJobStore:
        store = self.stand.another_store()
        store.gates.handle("fragile", self._gate)
        return store

    async def _gate(self, tx: Tx, fired: Fired) -> None:
        if self.model.handlers_fail:
            raise RuntimeError("a handler with a bug")

    # after every sentence

    @invariant()
    def model_and_tables_agree(self) -> None:
        self.world.sentences += 1
        self.run(self._compare())

    async def _compare(self) -> None:
        await self._name_the_newborn()
        tables, model = await lines_of_tables(self.stand), lines_of_model(self.model)
        assert tables == model, "\n".join(["tables:", *sorted(tables - model), "model:", *sorted(model - tables)])
        assert await broken(self.stand.eye) == []

    async def _name_the_newborn(self) -> None:
        """Give the model's new jobs the numbers and places that the kernel chose for them."""
        unborn = {job.tag: job for job in self.model.jobs if not job.job_id}
        for row in await self.stand.eye.fetch(NEWBORN, self.last_id):
            self.last_id = max(self.last_id, row["job_id"])
            job = unborn.pop(row["tag"], None)
            assert job is not None, f"the kernel made {row['tag']!r} of its own accord"
            job.job_id, job.order_key = row["job_id"], row["order_key"]
            assert job.over or 0 < job.order_key - job.base_key <= 100, f"{job.tag} stands at the wrong place"
        assert not unborn, f"the kernel did not make {sorted(unborn)}"

    # giving work

    def _spec(self, draft: Draft, group_id: int | None = None) -> JobSpec:
        self.tags += 1
        return draft.spec(f"t{self.tags}", group_id)

    def _refused(self, attempt: Coroutine[object, object, T], code: str | None) -> T | None:
        """The answer; or None when the refusal is the one that the model foretold."""
        answer, said = None, None
        try:
            answer = self.run(attempt)
        except PenstockError as e:
            said = e.code
        assert said == code, f"the answer was {said}, foretold was {code}"
        return answer

    @rule(store=STORES, drafts=st.lists(DRAFTS, min_size=1, max_size=3), which=WHICH, join=st.booleans())
    def enqueue(self, store: int, drafts: list[Draft], which: int, join: bool) -> None:
        group_id = self._pick(list(self.model.groups), which) if join and self.model.groups else None
        unique = {d.unique_key or i: d for i, d in enumerate(drafts)}.values()
        specs = [self._spec(d, group_id) for d in unique]
        added = self._refused(self.stores[store].enqueue(specs), self.model.refusal(specs))
        for spec, answer in zip(specs, added or (), strict=False):
            twin = self.model.twin(spec)
            assert answer.created == (twin is None)
            if twin is None:
                self.model.add(spec)
            else:
                assert answer.job_id == twin.job_id

    @rule(
        store=STORES,
        members=st.lists(SIMPLE, max_size=3),
        follow=st.booleans(),
        fragile=st.booleans(),
        deadline_in=st.sampled_from([None, 100, 400]),
    )
    def open_group(
        self, store: int, members: list[Draft], follow: bool, fragile: bool, deadline_in: int | None
    ) -> None:
        group = GroupSpec(
            name="g",
            gate="fragile" if fragile else None,
            on_success=[self._spec(Draft(kind="plain"))] if follow else (),
            on_failure=[self._spec(Draft(kind="once"))] if follow else (),
            deadline_in=_span(deadline_in),
        )
        specs = [self._spec(d) for d in members]
        opened = self._refused(
            self.stores[store].open_group(group, specs), "DRAINING" if self.model.draining and specs else None
        )
        if opened is None:
            return
        modelled = Group(
            group_id=opened[0],
            deadline=None if deadline_in is None else self.model.now + deadline_in,
            on_success=group.on_success,
            on_failure=group.on_failure,
            fragile=fragile,
        )
        self.model.groups[modelled.group_id] = modelled
        for draft, spec in zip(members, specs, strict=True):
            self.model.add(draft.spec(str(spec.payload["tag"]), modelled.group_id))
        if not members:
            self.model.fire(modelled)

    @precondition(lambda self: any(j.over for j in self.model.jobs))
    @rule(store=STORES, which=WHICH)
    def retry_what_is_over(self, store: int, which: int) -> None:
        job = self._pick([j for j in self.model.jobs if j.over], which)
        spec = self._again(job)
        code = self.model.refusal([spec]) if job.status in (Status.FAILED, Status.CANCELLED) else "INVALID_STATE"
        added = self._refused(self.stores[store].retry(job.job_id, actor="somebody"), code)
        if added is not None and added.created:
            self.model.add(spec)

    def _again(self, job: Job) -> JobSpec:
        draft = Draft(
            kind=job.kind,
            queue=job.queue,
            priority=job.priority,
            deadline_in=None if job.deadline_at is None else job.deadline_at - job.made_at,
            unique_key=f"retry:{job.job_id}",
            lock_key=job.lock_key,
        )
        return draft.spec("", None)

    @rule(store=STORES, on=st.booleans())
    def drain(self, store: int, on: bool) -> None:
        self.run(self.stores[store].drain(on, actor="somebody"))
        self.model.draining = on

    # claiming

    @rule(store=STORES, queue=st.sampled_from(QUEUES), limit=st.integers(1, 4), worker=st.sampled_from(["w1", "w2"]))
    def claim_calmly(self, store: int, queue: str, limit: int, worker: str) -> None:
        self.world.pace.at += CALM
        claimed = self.run(self.stores[store].claim(worker, [queue], limit))
        self.model.promote()
        first = self.model.ready(queue)[:limit]
        keys = [self.model.of(c.job_id).order_key for c in claimed]
        assert keys == [j.order_key for j in first], f"{keys} were claimed, not the first of the queue"
        self._take(claimed, worker)

    @rule(store=STORES, queue=st.sampled_from(QUEUES), limit=st.integers(1, 4))
    def claim_in_a_hurry(self, store: int, queue: str, limit: int) -> None:
        """A mark may hide the head of the queue for a moment, but never all of it, and nothing in between."""
        self.world.pace.at += HURRIED
        claimed = self.run(self.stores[store].claim("w3", [queue], limit))
        self.model.promote()
        self._in_a_row(claimed, queue, limit)
        self._take(claimed, "w3")

    def _in_a_row(self, claimed: Sequence[Claimed], queue: str, limit: int) -> None:
        keys = [j.order_key for j in self.model.ready(queue)]
        taken = [self.model.of(c.job_id).order_key for c in claimed]
        if not keys:
            assert taken == []
            return
        begin = keys.index(taken[0])
        assert taken == keys[begin : begin + limit]

    @rule(store=STORES, limit=st.integers(1, 5))
    def claim_of_several_queues(self, store: int, limit: int) -> None:
        self.world.pace.at += CALM
        claimed = self.run(self.stores[store].claim("w4", QUEUES, limit))
        self.model.promote()
        heads = sorted((q for q in QUEUES if self.model.ready(q)), key=lambda q: self.model.ready(q)[0].order_key)
        expected = [j.order_key for q in heads for j in self.model.ready(q)][:limit]
        assert [self.model.of(c.job_id).order_key for c in claimed] == expected
        self._take(claimed, "w4")

    def _take(self, claimed: Sequence[Claimed], worker: str) -> None:
        for one in claimed:
            job = self.model.of(one.job_id)
            assert (one.polls, one.state) == (job.polls, job.state)
            self.model.claim(one, worker)

    # ending

    def _outcome(self, job: Job, end: str) -> Outcome:
        match end:
            case "well":
                return Succeeded()
            case "badly":
                return Failed(error={"code": "BAD"})
            case "again":
                return Failed(error={"code": "BAD"}, retry_in=5)
            case _:
                group_id = job.group.group_id if job.group and "group" in end else None
                return Succeeded(spawn=[self._spec(Draft(kind="plain"), group_id) for _ in range(2)])

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=st.lists(WHICH, min_size=1, max_size=3), end=ENDS)
    def finish(self, store: int, which: list[int], end: str) -> None:
        chosen = {self._pick(self.model.held, w)[0] for w in which}
        self._finish(store, [(j, j.fence, self._outcome(j, end)) for j in chosen if j.fence is not None])

    @precondition(lambda self: self.model.lapsed)
    @rule(store=STORES, which=WHICH, end=ENDS, beside=st.booleans())
    def finish_with_an_old_fence(self, store: int, which: int, end: str, beside: bool) -> None:
        job, fence = self._pick(self.model.lapsed, which)
        endings = [(job, fence, self._outcome(job, end))]
        if beside and self.model.held:
            other, held = self._pick(self.model.held, which)
            endings.append((other, held, Succeeded()))
        self._finish(store, endings)

    def _finish(self, store: int, endings: Sequence[tuple[Job, Fence, Outcome]]) -> None:
        foretold = [self.model.verdict(*e) for e in endings]
        verdicts = self.run(self.stores[store].finish([Ending(fence=f, outcome=o) for _, f, o in endings]))
        assert verdicts == foretold
        self.model.finish(endings)

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, end=ENDS, limit=st.integers(1, 3))
    def exchange(self, store: int, which: int, end: str, limit: int) -> None:
        """What was ready is claimed in the statement that ends the others, before their gates are moved."""
        job, fence = self._pick(self.model.held, which)
        outcome = self._outcome(job, end)
        self.world.pace.at += CALM
        self.model.promote()
        before = [j.order_key for j in self.model.ready("default")[:limit]]
        foretold = [self.model.verdict(job, fence, outcome)]
        ending = Ending(fence=fence, outcome=outcome)
        answer = self.run(self.stores[store].exchange([ending], "w5", ["default"], limit))
        assert answer.verdicts == foretold
        if before:
            assert [self.model.of(c.job_id).order_key for c in answer.claimed] == before
            self._take(answer.claimed, "w5")
        self.model.finish([(job, fence, outcome)])
        if not before:
            self.run(self._name_the_newborn())
            self._take(answer.claimed, "w5")

    # holding

    @precondition(lambda self: self.model.issued)
    @rule(store=STORES, which=st.lists(WHICH, min_size=1, max_size=4))
    def renew(self, store: int, which: list[int]) -> None:
        """Whatever fences are shown, good ones and old ones."""
        pool = [*self.model.held, *self.model.lapsed]
        shown = dict.fromkeys(self._pick(pool, w) for w in which)
        renewal = self.run(self.stores[store].renew(beat(*(fence for _, fence in shown))))
        gone = [(j, f) for j, f in shown if j.fence != f and j.ways[f].how in ("lapsed", "cancelled")]
        assert set(renewal.cancelled) == {f for j, f in gone if j.status is Status.CANCELLED}
        assert set(renewal.lost) == {f for j, f in gone if j.status is not Status.CANCELLED}
        for job, fence in shown:
            if job.fence == fence:
                self.model.renew(job)

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, old=st.booleans())
    def progress(self, store: int, which: int, old: bool) -> None:
        job, fence = self._held_or_old(which, old)
        self.tags += 1
        update = ProgressUpdate(fence=fence, progress=f"p{self.tags}")
        assert self.run(self.stores[store].progress([update])) == [job.fence == fence]
        if job.fence == fence:
            job.progress = f"p{self.tags}"

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, old=st.booleans(), wake_in=st.sampled_from([0, 5, 90, 1000]))
    def park(self, store: int, which: int, old: bool, wake_in: int) -> None:
        job, fence = self._held_or_old(which, old)
        self.tags += 1
        parking = Parking(fence=fence, state=f"s{self.tags}", wake_in=wake_in)
        assert self.run(self.stores[store].park([parking])) == [_stands(job, fence, "parked")]
        if job.fence == fence:
            self.model.park(job, f"s{self.tags}", wake_in)

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, old=st.booleans())
    def release(self, store: int, which: int, old: bool) -> None:
        job, fence = self._held_or_old(which, old)
        release = Release(fence=fence, reason="SIGTERM")
        assert self.run(self.stores[store].release([release])) == [_stands(job, fence, "released")]
        if job.fence == fence:
            self.model.release(job)

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, old=st.booleans())
    def write_under_the_fence(self, store: int, which: int, old: bool) -> None:
        job, fence = self._held_or_old(which, old)
        assert self.run(_opens(self.stores[store], fence)) == (job.fence == fence)

    # taking away

    @precondition(lambda self: self.model.jobs)
    @rule(store=STORES, which=WHICH)
    def cancel(self, store: int, which: int) -> None:
        job = self._pick(self.model.jobs, which)
        code = "INVALID_STATE" if job.status in (Status.SUCCEEDED, Status.FAILED) else None
        cancelled = self._refused(self.stores[store].cancel(job.job_id, actor="somebody"), code)
        assert cancelled is None or cancelled.newly == (not job.over)
        if not job.over:
            self.model.cancel(job)

    @rule(seconds=st.sampled_from([1, 10, 31, 61, 61, 301, 601]))
    def advance(self, seconds: int) -> None:
        self.run(self.stand.advance(seconds))
        self.model.now += seconds

    @rule(store=STORES)
    def reap(self, store: int) -> None:
        reaped = self.run(self.stores[store].reap())
        assert (reaped.requeued, reaped.failed, reaped.expired, reaped.groups_fired) == self.model.reap()

    @rule(fail=st.booleans())
    def break_or_mend_the_gate_handlers(self, fail: bool) -> None:
        self.model.handlers_fail = fail

    @rule(store=STORES)
    def restart(self, store: int) -> None:
        """A control plane comes back without its marks."""
        self.stores[store] = self._open()

    # schedules

    @rule(store=STORES, name=st.sampled_from(["s1", "s2"]))
    def put_a_schedule(self, store: int, name: str) -> None:
        schedule = Schedule(name=name, cron="* * * * *", spec=JobSpec(kind="plain"))
        self.run(Schedules(self.stand.db, self.stores[store]).put(schedule))
        self.model.schedules[name] = next_minute(self.model.now)

    @precondition(lambda self: self.model.schedules)
    @rule(store=STORES)
    def tick(self, store: int) -> None:
        scheduler = Scheduler(self.stand.db, self.stores[store], every=1, metrics=LoopMetrics(CollectorRegistry()))
        ticked = self.run(scheduler.run_once())
        due = self.model.tick()
        assert ticked.enqueued == len(due)
        for name in due:
            at = EPOCH + timedelta(seconds=self.model.schedules[name])
            self.model.add(Draft(kind="plain", unique_key=f"schedule:{name}:{at.isoformat()}").spec("", None))
            self.model.schedules[name] = next_minute(self.model.now)

    # at the end of a story

    def teardown(self) -> None:
        """With a worker alive every job ends and every gate fires."""
        self.run(self._live_happily())

    async def _live_happily(self) -> None:
        store = self._open()
        self.model.handlers_fail = False
        for _ in range(20):
            await self.stand.advance(601)
            await store.reap()
            self.world.pace.at += CALM
            claimed = await store.claim("last", QUEUES, 1000)
            await store.finish([Ending(fence=c.fence, outcome=Succeeded()) for c in claimed])
            if not await self.stand.eye.fetchval(_LEFT):
                break
        assert await self.stand.eye.fetchval(_LEFT) == 0, "something never ended"
        assert await broken(self.stand.eye) == []

    # choosing

    def _pick(self, pool: Sequence[T], which: int) -> T:
        return pool[which % len(pool)]

    def _held_or_old(self, which: int, old: bool) -> tuple[Job, Fence]:
        return self._pick(self.model.lapsed if old and self.model.lapsed else self.model.held, which)


_LEFT = "SELECT (SELECT count(*) FROM penstock.live) + (SELECT count(*) FROM penstock.job_group WHERE status < 10)"


def _stands(job: Job, fence: Fence, how: str) -> bool:
    """A write stands if the fence is the job's, or if it is a repetition of one that stood."""
    return job.fence == fence or job.ways[fence].how == how


async def _opens(store: PgJobStore, fence: Fence) -> bool:
    try:
        async with store.fenced_transaction(fence):
            return True
    except StaleAttempt:
        return False


def tell(dsn: str, monkeypatch: pytest.MonkeyPatch, *, stories: int) -> int:
    """Tell so many stories of 50 sentences on a database; returns how many sentences there were."""
    pace = Pace()
    monkeypatch.setattr(exchange_module, "time", pace)
    with asyncio.Runner() as runner, capture_logs():
        standing = stand_on(dsn)
        world = World(runner, runner.run(standing.__aenter__()), pace)
        try:
            run_state_machine_as_test(
                type("Kernel", (Kernel,), {"world": world}),
                settings=settings(
                    max_examples=stories,
                    stateful_step_count=50,
                    deadline=None,
                    print_blob=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(standing.__aexit__(None, None, None))
    return world.sentences


def test_the_kernel_does_what_its_model_does(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tell(database, monkeypatch, stories=100 * DEPTH) > 1000 * DEPTH


def test_the_oldest_server_does_what_the_model_does(old_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tell(old_database, monkeypatch, stories=10 * DEPTH) > 100 * DEPTH
