"""The sentences of a story: everything that can be done to the kernel, each with what must come of
it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from prometheus_client import CollectorRegistry

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
from penstock.kit.errors import DatabaseUnavailable, StaleAttempt
from penstock.kit.loop import LoopMetrics
from tests.proof.model import Group, Plan, next_minute
from tests.proof.proof_db import EPOCH, beat, registration
from tests.proof.telling import (
    CALM,
    DRAFTS,
    ENDS,
    HURRIED,
    QUEUES,
    SIMPLE,
    STORES,
    WHICH,
    Draft,
    Telling,
    span,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.jobs.model import Claimed
    from penstock.jobs.store import PgJobStore
    from tests.proof.model import Job


class Kernel(Telling):
    @initialize(
        drafts=st.lists(DRAFTS, min_size=4, max_size=8),
        members=st.lists(SIMPLE, min_size=1, max_size=3),
    )
    def once_upon_a_time(self, drafts: list[Draft], members: list[Draft]) -> None:
        """A story begins with work under way: with no job there is little to tell."""
        for draft in drafts:
            self.enqueue(store=0, drafts=[draft], which=0, join=False)
            self.run(self.name_the_newborn())
        self.open_group(
            store=1, members=members, follow=True, fragile=True, force=False, deadline_in=400
        )
        self.run(self.name_the_newborn())
        self.claim_calmly(
            store=0, queue="default", limit=len(drafts) // 2, worker="w1", polled=None
        )

    # giving work

    @rule(
        store=STORES,
        drafts=st.lists(DRAFTS, min_size=1, max_size=3),
        which=WHICH,
        join=st.booleans(),
    )
    def enqueue(self, store: int, drafts: list[Draft], which: int, join: bool) -> None:
        group_id = self.pick(list(self.model.groups), which) if join and self.model.groups else None
        unique = {d.unique_key or i: d for i, d in enumerate(drafts)}.values()
        specs = [self.spec(d, group_id) for d in unique]
        added = self.answer_or(self.model.refusal(specs), self.stores[store].enqueue(specs))
        for spec, answer in zip(specs, added or (), strict=False):
            twin = self.model.twin(spec)
            assert answer.created == (twin is None)
            if twin is None:
                self.promised[self.model.add(spec).tag] = answer.job_id
            else:
                assert answer.job_id == twin.job_id

    @rule(
        store=STORES,
        members=st.lists(SIMPLE, max_size=3),
        follow=st.booleans(),
        fragile=st.booleans(),
        force=st.booleans(),
        deadline_in=st.sampled_from([None, 100, 400]),
    )
    def open_group(
        self,
        store: int,
        members: list[Draft],
        follow: bool,
        fragile: bool,
        force: bool,
        deadline_in: int | None,
    ) -> None:
        group = GroupSpec(
            name="g",
            gate="fragile" if fragile else None,
            on_success=[self.spec(Draft(kind="plain"))] if follow else (),
            on_failure=[self.spec(Draft(kind="once"))] if follow else (),
            deadline_in=span(deadline_in),
        )
        specs = [self.spec(d) for d in members]
        refusal = "DRAINING" if self.model.draining and specs and not force else None
        opened = self.answer_or(refusal, self.stores[store].open_group(group, specs, force=force))
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
        job = self.pick([j for j in self.model.jobs if j.over], which)
        spec = self._again(job)
        code = (
            self.model.refusal([spec])
            if job.status in (Status.FAILED, Status.CANCELLED)
            else "INVALID_STATE"
        )
        added = self.answer_or(code, self.stores[store].retry(job.job_id, actor="somebody"))
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

    @rule(
        store=STORES,
        queue=st.sampled_from(QUEUES),
        limit=st.integers(1, 4),
        worker=st.sampled_from(["w1", "w2"]),
        polled=st.sampled_from([None, None, True, False]),
    )
    def claim_calmly(
        self, store: int, queue: str, limit: int, worker: str, polled: bool | None
    ) -> None:
        self.world.pace.at += CALM
        claimed = self.run(self.stores[store].claim(worker, [queue], limit, polled=polled))
        self.model.promote()
        candidates = [
            j for j in self.model.ready(queue) if polled is None or (j.polls > 0) == polled
        ]
        keys = [self.model.of(c.job_id).order_key for c in claimed]
        assert keys == [j.order_key for j in candidates[:limit]], (
            f"{keys} were claimed, not the first of the queue"
        )
        self._take(claimed, worker)

    @rule(store=STORES, queue=st.sampled_from(QUEUES), limit=st.integers(1, 4))
    def claim_in_a_hurry(self, store: int, queue: str, limit: int) -> None:
        """A mark may hide the head of the queue for a moment, but never all of it, and nothing in
        between."""
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
        heads = sorted(
            (q for q in QUEUES if self.model.ready(q)),
            key=lambda q: self.model.ready(q)[0].order_key,
        )
        expected = [j.order_key for q in heads for j in self.model.ready(q)][:limit]
        assert [self.model.of(c.job_id).order_key for c in claimed] == expected
        self._take(claimed, "w4")

    def _take(self, claimed: Sequence[Claimed], worker: str, session: UUID | None = None) -> None:
        for one in claimed:
            job = self.model.of(one.job_id)
            assert (one.polls, one.state) == (job.polls, job.state)
            self.model.claim(one, worker, session)

    # processes

    @rule(store=STORES, worker=st.sampled_from(["p1", "p2"]))
    def a_process_starts(self, store: int, worker: str) -> None:
        self._register(store, worker, UUID(int=1000 + len(self.model.sessions)))

    @precondition(lambda self: self.model.sessions)
    @rule(store=STORES, which=WHICH, worker=st.sampled_from(["p1", "p1", "p2"]))
    def a_registration_arrives_again(self, store: int, which: int, worker: str) -> None:
        """Late, twice, or under another name: a session that is over cannot come back."""
        self._register(store, worker, self.pick(list(self.model.sessions), which))

    def _register(self, store: int, worker: str, session: UUID) -> None:
        refusal = self.model.refusal_of(session, worker)
        registered = self.answer_or(
            refusal, self.stores[store].register(registration(session, worker))
        )
        if registered is not None:
            foretold = self.model.register(session, worker)
            assert (registered.requeued, registered.failed, registered.shared) == foretold

    @precondition(lambda self: self.model.sessions)
    @rule(store=STORES, which=WHICH, queue=st.sampled_from(QUEUES), limit=st.integers(1, 3))
    def a_process_claims(self, store: int, which: int, queue: str, limit: int) -> None:
        process = self.pick(list(self.model.sessions.values()), which)
        self.world.pace.at += CALM
        claimed = self.run(
            self.stores[store].claim(process.worker, [queue], limit, session=process.session)
        )
        self.model.promote()
        ready = self.model.ready(queue) if self.model.may_claim(process.session) else []
        assert [self.model.of(c.job_id).order_key for c in claimed] == [
            j.order_key for j in ready[:limit]
        ]
        self._take(claimed, process.worker, process.session)

    @precondition(lambda self: self.model.sessions)
    @rule(store=STORES, which=WHICH)
    def a_process_beats(self, store: int, which: int) -> None:
        """With whatever it was ever given and did not give back itself."""
        process = self.pick(list(self.model.sessions.values()), which)
        mine = [j for j in self.model.jobs if j.session == process.session and j.fence is not None]
        shown = [j.fence for j in mine if j.fence is not None]
        renewal = self.run(
            self.stores[store].renew(beat(*shown, worker=process.worker, session=process.session))
        )
        assert renewal.superseded == self.model.beat(process.session)
        assert (list(renewal.lost), list(renewal.cancelled)) == ([], [])
        for job in mine:
            self.model.renew(job)

    @precondition(lambda self: self.model.sessions)
    @rule(store=STORES, which=WHICH)
    def a_process_leaves_in_order(self, store: int, which: int) -> None:
        process = self.pick(list(self.model.sessions.values()), which)
        self.run(self.stores[store].farewell(process.worker, process.session))
        self.model.farewell(process.session)

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
                return Succeeded(spawn=[self.spec(Draft(kind="plain"), group_id) for _ in range(2)])

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=st.lists(WHICH, min_size=1, max_size=3), end=ENDS)
    def finish(self, store: int, which: list[int], end: str) -> None:
        chosen = {self.pick(self.model.held, w)[0] for w in which}
        self._finish(
            store, [(j, j.fence, self._outcome(j, end)) for j in chosen if j.fence is not None]
        )

    @precondition(lambda self: self.model.lapsed)
    @rule(store=STORES, which=WHICH, end=ENDS, beside=st.booleans())
    def finish_with_an_old_fence(self, store: int, which: int, end: str, beside: bool) -> None:
        job, fence = self.pick(self.model.lapsed, which)
        endings = [(job, fence, self._outcome(job, end))]
        if beside and self.model.held:
            other, other_fence = self.pick(self.model.held, which)
            endings.append((other, other_fence, Succeeded()))
        self._finish(store, endings)

    def _finish(self, store: int, endings: Sequence[tuple[Job, Fence, Outcome]]) -> None:
        foretold = [self.model.verdict(*e) for e in endings]
        verdicts = self.run(
            self.stores[store].finish([Ending(fence=f, outcome=o) for _, f, o in endings])
        )
        assert verdicts == foretold
        self.model.finish(endings)

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, end=ENDS, limit=st.integers(1, 3))
    def exchange(self, store: int, which: int, end: str, limit: int) -> None:
        """Claims come last: what the ends spawned or opened is claimed as well."""
        job, fence = self.pick(self.model.held, which)
        outcome = self._outcome(job, end)
        self.world.pace.at += CALM
        self.model.promote()
        foretold = [self.model.verdict(job, fence, outcome)]
        ending = Ending(fence=fence, outcome=outcome)
        answer = self.run(self.stores[store].exchange([ending], "w5", ["default"], limit))
        assert answer.verdicts == foretold
        self.model.finish([(job, fence, outcome)])
        self.run(self.name_the_newborn())
        ready = [j.order_key for j in self.model.ready("default")[:limit]]
        if ready:
            assert [self.model.of(c.job_id).order_key for c in answer.claimed] == ready
        self._take(answer.claimed, "w5")

    # holding

    @precondition(lambda self: self.model.issued)
    @rule(store=STORES, which=st.lists(WHICH, min_size=1, max_size=4))
    def renew(self, store: int, which: list[int]) -> None:
        """Whatever fences are shown, good ones and old ones."""
        pool = [*self.model.held, *self.model.lapsed]
        shown = dict.fromkeys(self.pick(pool, w) for w in which)
        renewal = self.run(self.stores[store].renew(beat(*(fence for _, fence in shown))))
        gone = [
            (j, f) for j, f in shown if j.fence != f and j.ways[f].how in ("lapsed", "cancelled")
        ]
        assert set(renewal.cancelled) == {f for j, f in gone if j.status is Status.CANCELLED}
        assert set(renewal.lost) == {f for j, f in gone if j.status is not Status.CANCELLED}
        for job, fence in shown:
            if job.fence == fence:
                self.model.renew(job)

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, old=st.booleans())
    def progress(self, store: int, which: int, old: bool) -> None:
        job, fence = self.held_or_old(which, old)
        self.tags += 1
        update = ProgressUpdate(fence=fence, progress=f"p{self.tags}")
        assert self.run(self.stores[store].progress([update])) == [job.fence == fence]
        if job.fence == fence:
            job.progress = f"p{self.tags}"

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, old=st.booleans(), wake_in=st.sampled_from([0, 5, 90, 1000]))
    def park(self, store: int, which: int, old: bool, wake_in: int) -> None:
        job, fence = self.held_or_old(which, old)
        self.tags += 1
        parking = Parking(fence=fence, state=f"s{self.tags}", wake_in=wake_in)
        assert self.run(self.stores[store].park([parking])) == [_stands(job, fence, "parked")]
        if job.fence == fence:
            self.model.park(job, f"s{self.tags}", wake_in)

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, old=st.booleans())
    def release(self, store: int, which: int, old: bool) -> None:
        job, fence = self.held_or_old(which, old)
        release = Release(fence=fence, reason="SIGTERM")
        assert self.run(self.stores[store].release([release])) == [_stands(job, fence, "released")]
        if job.fence == fence:
            self.model.release(job)

    @precondition(lambda self: self.model.held)
    @rule(store=STORES, which=WHICH, old=st.booleans())
    def write_under_the_fence(self, store: int, which: int, old: bool) -> None:
        job, fence = self.held_or_old(which, old)
        assert self.run(_opens(self.stores[store], fence)) == (job.fence == fence)

    # taking away

    @precondition(lambda self: self.model.jobs)
    @rule(store=STORES, which=WHICH)
    def cancel(self, store: int, which: int) -> None:
        job = self.pick(self.model.jobs, which)
        code = "INVALID_STATE" if job.status in (Status.SUCCEEDED, Status.FAILED) else None
        cancelled = self.answer_or(code, self.stores[store].cancel(job.job_id, actor="somebody"))
        assert cancelled is None or cancelled.newly == (not job.over)
        if not job.over:
            self.model.cancel(job)

    @rule(seconds=st.sampled_from([1, 10, 31, 61, 61, 301, 601]))
    def advance(self, seconds: int) -> None:
        self.run(self.proof_db.advance(seconds))
        self.model.now += seconds

    @rule(store=STORES)
    def reap(self, store: int) -> None:
        reaped = self.run(self.stores[store].reap())
        assert (
            reaped.requeued,
            reaped.failed,
            reaped.expired,
            reaped.groups_fired,
        ) == self.model.reap()

    @rule(fail=st.booleans())
    def break_or_mend_the_gate_handlers(self, fail: bool) -> None:
        self.model.handlers_fail = fail

    @rule(store=STORES, which=WHICH)
    def a_read_only_database_is_away(self, store: int, which: int) -> None:
        """Every verb says so, on connections that were open and on new ones, and nothing
        changes.
        """
        kernel = self.stores[store]
        job = self.pick(self.model.jobs, which)
        fence = job.fence or Fence(job_id=job.job_id, attempt_id=UUID(int=1))
        before = self.run(self.proof_db.dump())
        self.run(self.proof_db.read_only(True))
        for verb in (
            kernel.enqueue([JobSpec(kind="plain")]),
            kernel.claim("w1", QUEUES[:1], 1),
            kernel.finish([Ending(fence=fence, outcome=Succeeded())]),
            kernel.renew(beat(fence)),
            kernel.cancel(job.job_id, actor="somebody"),
            kernel.reap(),
        ):
            self.answer_or(DatabaseUnavailable.code, verb)
        self.run(self.proof_db.read_only(False))
        assert self.run(self.proof_db.dump()) == before

    @rule(store=STORES)
    def restart(self, store: int) -> None:
        """A control plane comes back without its marks."""
        self.stores[store] = self.open_store()

    # schedules

    @rule(store=STORES, name=st.sampled_from(["s1", "s2"]), locked=st.booleans())
    def put_a_schedule(self, store: int, name: str, locked: bool) -> None:
        lock_key = f"l{name[1]}" if locked else None
        schedule = Schedule(
            name=name, cron="* * * * *", spec=JobSpec(kind="plain", lock_key=lock_key)
        )
        self.run(Schedules(self.proof_db.db, self.stores[store]).put(schedule))
        self.model.schedules[name] = Plan(next_at=next_minute(self.model.now), lock_key=lock_key)

    @precondition(lambda self: self.model.schedules)
    @rule(store=STORES)
    def tick(self, store: int) -> None:
        scheduler = Scheduler(
            self.proof_db.db, self.stores[store], every=1, metrics=LoopMetrics(CollectorRegistry())
        )
        ticked = self.run(scheduler.run_once())
        due = self.model.tick()
        assert ticked.enqueued == len(due)
        for name in due:
            plan = self.model.schedules[name]
            at = EPOCH + timedelta(seconds=plan.next_at)
            key = f"schedule:{name}:{at.isoformat()}"
            self.model.add(
                Draft(kind="plain", unique_key=key, lock_key=plan.lock_key).spec("", None)
            )
            self.model.schedules[name] = Plan(
                next_at=next_minute(self.model.now), lock_key=plan.lock_key
            )


def _stands(job: Job, fence: Fence, how: str) -> bool:
    """A write stands if the fence is the job's, or if it is a repetition of one that stood."""
    return job.fence == fence or job.ways[fence].how == how


async def _opens(store: PgJobStore, fence: Fence) -> bool:
    try:
        async with store.fenced_transaction(fence):
            return True
    except StaleAttempt:
        return False
