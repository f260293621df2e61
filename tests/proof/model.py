"""The kernel in plain Python: what it should do, with no database, no concurrency and no
cleverness.

The state machine does everything twice, here and in PostgreSQL, and compares. Times are whole
seconds since the stand's epoch. Identifiers, fences and the exact place within a batch are the
kernel's to choose; the model takes them over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.jobs.gates import GATE_PAUSE
from penstock.jobs.model import Failed, JobSpec, Status, Succeeded, Verdict
from penstock.jobs.scheduler import FIRST_PAUSE, LONGEST_PAUSE
from penstock.jobs.sessions import SHARED_SECONDS
from tests.proof.proof_db import EPOCH, POLICIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from penstock.jobs.model import Claimed, Fence, Outcome

POLICY = {p.name: p for p in POLICIES}
AGEING = 60


@dataclass(frozen=True, slots=True)
class Way:
    """How an attempt came to its end."""

    how: str
    attempt_no: int
    worker: str | None


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A job and, while it is not over, its live row; `ways` has the attempts that are behind it."""

    tag: str
    kind: str
    queue: str
    priority: int
    max_attempts: int
    made_at: int
    deadline_at: int | None
    status: Status
    deadline: int | None
    wake_at: int | None
    group: Group | None = None
    lock_key: str | None = None
    unique_key: str | None = None
    job_id: int = 0
    base_key: int = 0
    order_key: int = 0
    fence: Fence | None = None
    attempt_no: int = 0
    polls: int = 0
    worker: str | None = None
    session: UUID | None = None
    lease_until: int | None = None
    overdue: bool = False
    state: str | None = None
    progress: str | None = None
    ways: dict[Fence, Way] = field(default_factory=dict)
    ended_at: int = 0
    ended_by: Fence | None = None
    error: str | None = None

    @property
    def over(self) -> bool:
        return self.status.over

    @property
    def running(self) -> bool:
        return self.status is Status.RUNNING

    def leave(self, how: str, status: Status) -> None:
        """The attempt is over, the job is not."""
        self._close(how)
        self.status, self.worker = status, None

    def end(self, status: Status, how: str, error: str | None, now: int) -> None:
        by_hand = how in ("succeeded", "failed")
        self.ended_by = self.fence if by_hand else None
        self._close(how)
        self.status, self.error, self.ended_at = status, error, now

    def _close(self, how: str) -> None:
        if self.fence is not None:
            self.ways[self.fence] = Way(how, self.attempt_no, self.worker)
        self.fence = self.lease_until = self.session = None


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    group_id: int
    deadline: int | None
    on_success: Sequence[JobSpec]
    on_failure: Sequence[JobSpec]
    fragile: bool
    status: int = 0
    error: str | None = None
    members: list[Job] = field(default_factory=list)
    look_at: int | None = None

    @property
    def alive(self) -> list[Job]:
        return [j for j in self.members if not j.over]

    def awaits_the_reaper(self, now: int) -> bool:
        look_at = self.deadline if self.look_at is None else self.look_at
        return self.status < 10 and look_at is not None and look_at <= now


@dataclass(slots=True, kw_only=True, eq=False)
class Plan:
    """A schedule, and how often its job was refused."""

    next_at: int
    lock_key: str | None
    try_at: int | None = None
    failures: int = 0

    @property
    def due_at(self) -> int:
        return self.next_at if self.try_at is None else self.try_at


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """A process that registered under a worker's name."""

    session: UUID
    worker: str
    ended_at: int | None = None
    superseded_by: UUID | None = None
    alive_at: int | None = None

    @property
    def over(self) -> bool:
        return self.ended_at is not None

    @property
    def vanished(self) -> bool:
        """It is over, and was not heard of since."""
        return self.over and self.alive_at is None


@dataclass(slots=True, kw_only=True)
class Model:
    now: int = 0
    draining: bool = False
    handlers_fail: bool = False
    jobs: list[Job] = field(default_factory=list)
    groups: dict[int, Group] = field(default_factory=dict)
    schedules: dict[str, Plan] = field(default_factory=dict)
    issued: set[Fence] = field(default_factory=set)
    sessions: dict[UUID, Session] = field(default_factory=dict)

    # who there is

    @property
    def alive(self) -> list[Job]:
        return [j for j in self.jobs if not j.over]

    @property
    def held(self) -> list[tuple[Job, Fence]]:
        return [(j, j.fence) for j in self.jobs if j.fence is not None]

    @property
    def lapsed(self) -> list[tuple[Job, Fence]]:
        """Fences that were rotated, however."""
        return [(j, fence) for j in self.jobs for fence in j.ways]

    def of(self, job_id: int) -> Job:
        return next(j for j in self.jobs if j.job_id == job_id)

    # enqueue

    def refusal(self, specs: Sequence[JobSpec]) -> str | None:
        """Why these specs are not taken."""
        locks = [s.lock_key for s in specs if s.lock_key]
        if len(locks) != len(set(locks)):
            return "CONFLICT"
        if any(s.group_id is not None and self.groups[s.group_id].status != 0 for s in specs):
            return "INVALID_STATE"
        if self.draining:
            return "DRAINING"
        taken = {j.lock_key for j in self.alive}
        lock_keys = [s.lock_key for s in specs if s.lock_key and self.twin(s) is None]
        return "RESOURCE_LOCKED" if taken.intersection(lock_keys) else None

    def twin(self, spec: JobSpec) -> Job | None:
        return next(
            (j for j in self.jobs if spec.unique_key and j.unique_key == spec.unique_key), None
        )

    def add(self, spec: JobSpec) -> Job:
        policy = POLICY[spec.kind]
        deadline = (
            None if spec.deadline_in is None else self.now + int(spec.deadline_in.total_seconds())
        )
        job = Job(
            tag=tag_of(spec),
            kind=spec.kind,
            queue=spec.queue or policy.queue,
            priority=policy.priority if spec.priority is None else spec.priority,
            max_attempts=spec.max_attempts or policy.max_attempts,
            made_at=self.now,
            deadline_at=deadline,
            deadline=deadline,
            status=Status.READY if spec.run_in is None else Status.SCHEDULED,
            wake_at=None if spec.run_in is None else self.now + int(spec.run_in.total_seconds()),
            group=None if spec.group_id is None else self.groups[spec.group_id],
            lock_key=spec.lock_key,
            unique_key=spec.unique_key,
        )
        start = self.now if job.wake_at is None else job.wake_at
        job.base_key = (int(EPOCH.timestamp()) + start + job.priority * AGEING) * 1_000_000
        self.jobs.append(job)
        if job.group is not None:
            job.group.members.append(job)
        return job

    # claim

    def promote(self) -> None:
        for job in self.alive:
            if job.status in (Status.PARKED, Status.SCHEDULED) and (job.wake_at or 0) <= self.now:
                job.status, job.wake_at = Status.READY, None

    def ready(self, queue: str) -> list[Job]:
        jobs = [j for j in self.jobs if j.status is Status.READY and j.queue == queue]
        return sorted(jobs, key=lambda j: j.order_key)

    def claim(self, claimed: Claimed, worker: str, session: UUID | None = None) -> None:
        """Take over what the kernel chose; that it chose well is for the caller to judge."""
        job, policy = self.of(claimed.job_id), POLICY[claimed.kind]
        assert job.status is Status.READY, f"{job.tag} was claimed while {job.status.name}"
        assert claimed.fence not in self.issued, "a fence was issued twice"
        self.issued.add(claimed.fence)
        job.lease_until = earliest(job.deadline_at, self.now + policy.lease)
        job.overdue = False
        job.deadline = earliest(job.deadline, self.now + policy.timeout)
        job.status, job.fence, job.worker, job.session = (
            Status.RUNNING,
            claimed.fence,
            worker,
            session,
        )
        job.attempt_no += 1

    # sessions

    def refusal_of(self, session: UUID, worker: str) -> str | None:
        """Why a session may not register."""
        earlier = self.sessions.get(session)
        if earlier is None:
            return None
        if earlier.worker != worker:
            return "VALIDATION_FAILED"
        return "CONFLICT" if earlier.over else None

    def register(self, session: UUID, worker: str) -> tuple[int, int, bool]:
        """How many attempts go back to the queue, how many jobs fail, and whether the name is
        shared."""
        if session in self.sessions:
            return 0, 0, False
        of_name = [s for s in self.sessions.values() if s.worker == worker]
        recently = self.now - SHARED_SECONDS
        shared = any(s.alive_at is not None and s.alive_at > recently for s in of_name)
        vanished = {s.session for s in of_name if s.vanished}
        current = next((s for s in of_name if not s.over), None)
        if current is not None:
            current.ended_at, current.superseded_by = self.now, session
            vanished |= set() if shared else {current.session}
        self.sessions[session] = Session(session=session, worker=worker)
        taken = [j for j in self.alive if j.session in vanished]
        failed = [j for j in taken if self.lapse(j)]
        self.settle(failed)
        return len(taken) - len(failed), len(failed), shared and current is not None

    def beat(self, session: UUID) -> bool:
        """Whether it hears that it was superseded."""
        one = self.sessions.get(session)
        if one is None or one.superseded_by is None:
            return False
        one.alive_at = self.now
        return True

    def farewell(self, session: UUID) -> None:
        one = self.sessions.get(session)
        if one is not None and not one.over:
            one.ended_at = self.now

    def may_claim(self, session: UUID | None) -> bool:
        one = None if session is None else self.sessions.get(session)
        return one is None or not one.vanished

    # the writes of an attempt

    def verdict(self, job: Job, fence: Fence, outcome: Outcome) -> Verdict:
        if job.fence != fence:
            match job.ways[fence].how:
                case "succeeded" | "failed":
                    return Verdict.REPEATED
                case "retried":
                    return Verdict.RETRYING
                case _:
                    return Verdict.STALE
        again = (
            isinstance(outcome, Failed)
            and outcome.retry_in is not None
            and job.attempt_no < job.max_attempts
        )
        return Verdict.RETRYING if again else Verdict.DONE

    def finish(self, endings: Iterable[tuple[Job, Fence, Outcome]]) -> None:
        """One batch; of what is stale or repeated nothing is done."""
        ended: list[Job] = []
        spawned: list[JobSpec] = []
        current = [(job, fence, outcome) for job, fence, outcome in endings if job.fence == fence]
        for job, fence, outcome in sorted(current, key=lambda e: e[0].job_id):
            verdict = self.verdict(job, fence, outcome)
            if verdict is Verdict.RETRYING and isinstance(outcome, Failed):
                job.leave("retried", Status.SCHEDULED)
                job.deadline, job.wake_at = job.deadline_at, self.now + int(outcome.retry_in or 0)
            elif verdict is Verdict.DONE:
                if isinstance(outcome, Succeeded):
                    job.end(Status.SUCCEEDED, "succeeded", None, self.now)
                    spawned += outcome.spawn
                else:
                    job.end(Status.FAILED, "failed", "BAD", self.now)
                ended.append(job)
        self.settle(ended, spawned)

    def renew(self, job: Job) -> None:
        job.overdue = job.deadline is not None and job.deadline <= self.now
        renewed = earliest(job.deadline_at, self.now + POLICY[job.kind].lease)
        job.lease_until = self.now if job.overdue else renewed

    def park(self, job: Job, state: str, wake_in: int) -> None:
        job.leave("parked", Status.PARKED)
        job.attempt_no -= 1
        job.polls += 1
        job.state, job.wake_at = state, earliest(job.deadline, self.now + wake_in)

    def release(self, job: Job) -> None:
        job.leave("released", Status.READY)
        job.attempt_no -= 1
        job.deadline = job.deadline_at

    # ends that no worker writes

    def cancel(self, job: Job) -> None:
        self.stop(job, Status.CANCELLED, "cancelled", "CANCELLED")
        self.settle([job])

    def stop(self, job: Job, status: Status, how: str, error: str) -> None:
        job.end(status, how, error, self.now)
        if job.state is not None and (kind := POLICY[job.kind].cleanup_kind) is not None:
            self.add(JobSpec(kind=kind, payload={"tag": f"sweep of {job.job_id}"}))

    def reap(self) -> tuple[int, int, int, int]:
        """How many were requeued, failed and expired, and how many gates fired."""
        lapsed = [j for j in self.alive if j.lease_until is not None and j.lease_until <= self.now]
        failed = [j for j in lapsed if self.lapse(j)]
        expired = [
            j
            for j in self.alive
            if not j.running and j.deadline is not None and j.deadline <= self.now
        ]
        for job in expired:
            self.stop(job, Status.FAILED, "expired", "DEADLINE_EXCEEDED")
        fired = self.settle([*failed, *expired])
        return len(lapsed) - len(failed), len(failed), len(expired), fired + self.reap_groups()

    def lapse(self, job: Job) -> bool:
        """Back to the queue, or True: this was the last of it."""
        used_up = job.overdue or (job.deadline_at is not None and job.deadline_at <= self.now)
        if used_up or job.attempt_no >= job.max_attempts:
            self.stop(
                job, Status.FAILED, "lapsed", "DEADLINE_EXCEEDED" if used_up else "ATTEMPTS_USED_UP"
            )
            return True
        job.leave("lapsed", Status.READY)
        job.deadline, job.progress = job.deadline_at, None
        return False

    def reap_groups(self) -> int:
        stuck = [g for g in self.groups.values() if g.awaits_the_reaper(self.now)]
        for group in stuck:
            if group.deadline is not None and group.deadline <= self.now:
                self.fail(group, "DEADLINE_EXCEEDED", group.alive)
            elif group.status == 1:
                self.fail(group, "", [j for j in group.alive if not j.running])
        fired = sum(self.fire(g) for g in stuck)
        for group in stuck:
            if group.awaits_the_reaper(self.now):
                group.look_at = self.now if group.status == 1 else None
        return fired

    # gates

    def settle(self, ended: Sequence[Job], spawned: Sequence[JobSpec] = ()) -> int:
        for spec in spawned:
            if spec.group_id is None or self.groups[spec.group_id].status == 0:
                self.add(spec)
        touched = {j.group.group_id: j.group for j in ended if j.group is not None}
        for job in ended:
            if job.group is not None and job.status is not Status.SUCCEEDED:
                self.fail(job.group, "MEMBER_FAILED", [j for j in job.group.alive if not j.running])
        return sum(self.fire(g) for _, g in sorted(touched.items()))

    def fail(self, group: Group, error: str, doomed: Sequence[Job]) -> None:
        if group.status == 0:
            group.status, group.error, group.look_at = 1, error, self.now
        for job in doomed:
            self.stop(job, Status.CANCELLED, "cancelled", "GROUP_FAILED")

    def fire(self, group: Group) -> bool:
        if group.status >= 10 or group.alive:
            return False
        if group.fragile and self.handlers_fail:
            group.look_at = self.now + int(GATE_PAUSE)
            return False
        group.status = 10 if group.status == 0 else 11
        for spec in group.on_success if group.status == 10 else group.on_failure:
            self.add(spec)
        return True

    # schedules

    def tick(self) -> list[str]:
        """The schedules whose jobs a pass of the scheduler makes; the caller adds them. The others
        wait."""
        if self.draining:
            return []
        due = [name for name, plan in self.schedules.items() if plan.due_at <= self.now]
        remaining = []
        taken = {j.lock_key for j in self.alive if j.lock_key}
        for name in sorted(due, key=lambda name: self.schedules[name].due_at):
            plan = self.schedules[name]
            if plan.lock_key in taken:
                plan.try_at = self.now + int(min(FIRST_PAUSE * 2**plan.failures, LONGEST_PAUSE))
                plan.failures += 1
            else:
                remaining.append(name)
        return remaining


def earliest(*times: int | None) -> int | None:
    return min((t for t in times if t is not None), default=None)


def next_minute(now: int) -> int:
    return now // 60 * 60 + 60


def tag_of(spec: JobSpec) -> str:
    """What tells a job apart before it has a number."""
    key = spec.unique_key or ""
    return key if key.startswith(("schedule:", "retry:")) else str(spec.payload["tag"])
