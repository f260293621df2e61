"""Workers, people and a reaper over a database that fails; they remember what they were told, and
that is checked.

Whoever gets no reply asks again, as a real worker does. The storm does not judge: `contradictions`
reads the tables afterwards and compares them with what everybody was told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

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
    Verdict,
)
from penstock.kit.errors import DatabaseUnavailable, InvalidState, ResourceLocked, StaleAttempt
from penstock.kit.sqlfile import parse
from tests.proof.proof_db import LEASE, beat

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Sequence

    from penstock.jobs.store import PgJobStore
    from tests.proof.faults import Saboteur
    from tests.proof.proof_db import ProofDatabase

T = TypeVar("T")
NOTE = parse(
    "note",
    "INSERT INTO penstock.proof_note VALUES (:note, :job_id, :attempt_id) ON CONFLICT DO NOTHING",
)


@dataclass(slots=True, kw_only=True)
class Story:
    """What the players were told; the tables must not contradict any of it."""

    verdicts: dict[Fence, Verdict] = field(default_factory=dict)
    asked: dict[Fence, Outcome] = field(default_factory=dict)
    cancelled: set[int] = field(default_factory=set)
    accepted: dict[str, int] = field(default_factory=dict)
    spawned: dict[Fence, str] = field(default_factory=dict)
    notes: dict[str, bool] = field(default_factory=dict)
    repeats: int = 0


class FaultRun:
    """Three workers, a person and a reaper, one operation at a time, in an order that the seed
    decides."""

    def __init__(
        self, proof_db: ProofDatabase, store: PgJobStore, saboteur: Saboteur, rng: random.Random
    ) -> None:
        self.proof_db = proof_db
        self.store = store
        self.saboteur = saboteur
        self.rng = rng
        self.story = Story()
        self.held: list[Fence] = []
        self.old: list[Fence] = []
        self.count = 0
        self.operations = 0

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is a reply, as everybody does who speaks to the kernel."""
        while True:
            self.operations += 1
            try:
                with self.saboteur.at_work():
                    return await call()
            except DatabaseUnavailable:
                continue

    def tag(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def some(self) -> Fence:
        """Mostly an attempt that is held; sometimes one that was given up or lost."""
        pool = self.old if self.old and (not self.held or self.rng.random() < 0.2) else self.held
        return self.rng.choice(pool)

    def drop(self, fence: Fence) -> None:
        if fence in self.held:
            self.held.remove(fence)
            self.old.append(fence)

    async def enqueue(self) -> None:
        tag = self.tag()
        lock = self.rng.choice([None, None, None, f"l{self.count % 7}"])
        kind = self.rng.choice(["plain", "plain", "remote", "once"])
        spec = JobSpec(kind=kind, unique_key=tag, lock_key=lock, payload={"tag": tag})
        try:
            [added] = await self.insist(lambda: self.store.enqueue([spec]))
        except ResourceLocked:
            return
        self.story.accepted[tag] = added.job_id

    async def open_group(self) -> None:
        tag = self.tag()
        follow = JobSpec(kind="once", unique_key=f"after {tag}")
        members = [JobSpec(kind="plain", unique_key=f"{tag} {i}") for i in range(2)]
        group = GroupSpec(name=tag, on_success=[follow], on_failure=[follow])
        _, added = await self.insist(lambda: self.store.open_group(group, members))
        self.story.accepted |= {f"{tag} {i}": a.job_id for i, a in enumerate(added)}

    async def claim(self) -> None:
        limit = self.rng.randint(1, 3)
        claimed = await self.insist(lambda: self.store.claim("w", ["default"], limit))
        self.held += [c.fence for c in claimed]

    async def finish(self) -> None:
        endings = [
            self.ending(fence) for fence in {self.some() for _ in range(self.rng.randint(1, 3))}
        ]
        self.told(endings, await self.insist(lambda: self.store.finish(endings)))

    async def exchange(self) -> None:
        endings = [self.ending(self.some())]
        answer = await self.insist(lambda: self.store.exchange(endings, "w", ["default"], 2))
        self.held += [c.fence for c in answer.claimed]
        self.told(endings, answer.verdicts)

    def ending(self, fence: Fence) -> Ending:
        tag = self.tag()
        outcomes: list[Outcome] = [
            Succeeded(),
            Succeeded(spawn=[JobSpec(kind="plain", payload={"spawned": tag})]),
            Failed(error={"code": "BAD"}),
            Failed(error={"code": "BAD"}, retry_in=5),
        ]
        outcome = self.rng.choice(outcomes)
        if fence not in self.story.asked:
            self.story.asked[fence] = outcome
            self.story.spawned[fence] = tag
        return Ending(fence=fence, outcome=self.story.asked[fence])

    def told(self, endings: Sequence[Ending], verdicts: Sequence[Verdict]) -> None:
        for ending, verdict in zip(endings, verdicts, strict=True):
            self.story.repeats += verdict is Verdict.REPEATED
            self.story.verdicts.setdefault(ending.fence, verdict)
            assert self.story.verdicts[ending.fence].accepted == verdict.accepted, (
                "a verdict was taken back"
            )
            self.drop(ending.fence)

    async def renew(self) -> None:
        renewal = await self.insist(lambda: self.store.renew(beat(*self.held)))
        for fence in (*renewal.lost, *renewal.cancelled):
            self.drop(fence)

    async def progress(self) -> None:
        fence = self.some()
        await self.insist(
            lambda: self.store.progress([ProgressUpdate(fence=fence, progress={"n": self.count})])
        )

    async def park(self) -> None:
        fence = self.some()
        await self.insist(
            lambda: self.store.park([Parking(fence=fence, state={"n": 1}, wake_in=5)])
        )
        self.drop(fence)

    async def release(self) -> None:
        fence = self.some()
        await self.insist(lambda: self.store.release([Release(fence=fence, reason="SIGTERM")]))
        self.drop(fence)

    async def write(self) -> None:
        fence, note = self.some(), self.tag()
        try:
            await self.insist(lambda: self._write(fence, note))
        except StaleAttempt:
            self.story.notes.setdefault(note, False)
        else:
            self.story.notes[note] = True

    async def _write(self, fence: Fence, note: str) -> None:
        async with self.store.fenced_transaction(fence) as tx:
            await tx.fetch(NOTE, note=note, job_id=fence.job_id, attempt_id=fence.attempt_id)

    async def cancel(self) -> None:
        job_id = self.rng.choice(list(self.story.accepted.values()))
        try:
            await self.insist(lambda: self.store.cancel(job_id, actor="somebody"))
        except InvalidState:
            return
        self.story.cancelled.add(job_id)

    async def reap(self) -> None:
        await self.insist(self.store.reap)

    async def wait(self) -> None:
        await self.proof_db.advance(self.rng.choice([1, 10, LEASE + 1]))

    async def rage(self, operations: int) -> None:
        busy = [
            self.claim,
            self.claim,
            self.finish,
            self.finish,
            self.exchange,
            self.exchange,
            self.renew,
        ]
        rare = [self.progress, self.park, self.release, self.write]
        idle = [self.enqueue, self.enqueue, self.enqueue, self.open_group, self.reap, self.wait]
        await self.enqueue()
        while self.operations < operations:
            calls = (
                [*idle, *busy, *rare, self.cancel] if self.held or self.old else [*idle, self.claim]
            )
            await self.rng.choice(calls)()

    async def calm(self) -> None:
        """The storm is over: what is left is worked off by a worker that nothing happens to."""
        for _ in range(40):
            await self.proof_db.advance(LEASE + 1)
            await self.proof_db.store.reap()
            claimed = await self.proof_db.another_store().claim("last", ["default"], 1000)
            await self.proof_db.store.finish(
                [Ending(fence=c.fence, outcome=Succeeded()) for c in claimed]
            )
            if not claimed and not await self.proof_db.eye.fetchval(
                "SELECT count(*) FROM penstock.live"
            ):
                return


async def contradictions(proof_db: ProofDatabase, story: Story) -> list[str]:
    """Everything that the tables say and that somebody was told otherwise."""
    ends = {r["job_id"]: r for r in await proof_db.eye.fetch("SELECT * FROM penstock.outcome")}
    jobs = {r["job_id"]: r for r in await proof_db.eye.fetch("SELECT * FROM penstock.job")}
    by_key = {r["unique_key"]: r["job_id"] for r in jobs.values()}
    spawned = [r["payload"] for r in jobs.values() if "spawned" in r["payload"]]
    notes = {r["note"] for r in await proof_db.eye.fetch("SELECT note FROM penstock.proof_note")}
    contradicting = [f"job {job_id} was lost" for job_id in jobs if job_id not in ends]
    contradicting += [
        f"{tag} was accepted as {j}" for tag, j in story.accepted.items() if by_key.get(tag) != j
    ]
    contradicting += [
        f"{j} was cancelled" for j in story.cancelled if ends[j]["status"] != Status.CANCELLED
    ]
    for fence, verdict in story.verdicts.items():
        ended_by_it = ends[fence.job_id]["attempt_id"] == fence.attempt_id
        if verdict is Verdict.STALE and ended_by_it:
            contradicting.append(f"{fence} was told that it was stale, and it ended the job")
        if verdict is Verdict.DONE and not ended_by_it:
            contradicting.append(f"{fence} was told that it ended the job, and it did not")
        payload = f'{{"spawned": "{story.spawned[fence]}"}}'
        outcome = story.asked[fence]
        expected = int(ended_by_it and isinstance(outcome, Succeeded) and bool(outcome.spawn))
        if spawned.count(payload) != expected:
            contradicting.append(f"{fence} spawned {spawned.count(payload)} times")
    contradicting += [
        f"note {n} was refused and is there"
        for n, stood in story.notes.items()
        if stood != (n in notes)
    ]
    groups = await proof_db.eye.fetch("SELECT name, status FROM penstock.job_group")
    contradicting += [
        f"group {g['name']} has status {g['status']}" for g in groups if g["status"] < 10
    ]
    return contradicting
