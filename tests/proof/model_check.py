"""A model checker for the kernel's rules: every story of two workers, breadth first, until
something is wrong.

The model keeps of the kernel what its promises rest on: rows with a status, a fence and a lease;
workers that believe what they were told last; requests that are late, lost or delivered twice; a
database that may forget a claim which it did not yet write to disk. `Rules` are ours. Each field
set otherwise is a rule that some queue really has, and a story in which it breaks a promise: the
shortest one is the answer of `check`. A checker that finds nothing in our rules is worth something
only because it finds these.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

READY, RUNNING, PARKED, DONE, FAILED, CANCELLED = (
    "ready",
    "running",
    "parked",
    "done",
    "failed",
    "cancelled",
)
OVER = (DONE, FAILED, CANCELLED)
ATTEMPTS = 2
RESCUE = "somebody cancels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the kernel does; the defaults are ours."""

    fence: Literal["random", "counter", "attempt number", "state"] = "random"
    heartbeat_is_fenced: bool = True
    reaper_looks_again: bool = True
    cancel_takes_the_fence: bool = True
    release_takes_the_fence: bool = True
    park_takes_the_fence: bool = True
    silence_is_looked_up: bool = True
    gate_counts_live_members: bool = True
    gate_looks_after_its_lock: bool = True
    lock_is_the_row: bool = True
    reaper_counts_attempts: bool = True
    take_over_takes_the_fence: bool = True
    take_over_counts_attempts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """How much of the world is looked at; `letters` are requests on their way at one time.

    With `own_jobs` each worker takes one job only, which is enough for what lies between jobs. With
    `successors` a worker may be started anew at any moment, while the one before it may be alive or
    not.
    """

    jobs: int = 1
    workers: int = 2
    letters: int = 2
    giving_up: bool = True
    lost_claims: bool = True
    own_jobs: bool = False
    successors: bool = True


class Row(NamedTuple):
    """A job as the database has it. `claim` is who really holds it: the checker knows, the rules
    may not."""

    status: str = READY
    token: int | None = None
    claim: int | None = None
    lapsed: bool = False
    attempts: int = 0
    counter: int = 0
    holder: int | None = None
    ended_by: int | None = None
    before: tuple[str, int, int] | None = None


class Mind(NamedTuple):
    """What a worker believes to hold: the token that it shows, and which claim gave it."""

    job: int
    token: int
    claim: int
    asked: bool = False


class World(NamedTuple):
    rows: tuple[Row, ...]
    minds: tuple[Mind | None, ...]
    post: frozenset[Mind] = frozenset()
    doomed: frozenset[int] = frozenset()
    open_ends: tuple[tuple[int, bool], ...] = ()
    fired: int = 0
    counted: int = 0
    cancelled: frozenset[int] = frozenset()
    free_locks: frozenset[int] = frozenset()
    wrong: str | None = None


Step = tuple[str, World]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    worlds: int
    story: tuple[str, ...] = ()
    wrong: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.wrong}: {' → '.join(self.story)}"
            if self.wrong
            else f"{self.worlds:,} worlds, all well"
        )


def check(rules: Rules, scope: Scope) -> Found:
    """The shortest story in which a promise is broken, or the number of worlds in which none is."""
    first = World(rows=(Row(),) * scope.jobs, minds=(None,) * scope.workers)
    came_from: dict[World, tuple[World, str] | None] = {first: None}
    leads_to: dict[World, list[World]] = {}
    queue = deque([first])
    while queue:
        world = queue.popleft()
        if wrong := world.wrong or _broken(world):
            return Found(worlds=len(came_from), story=_story(came_from, world), wrong=wrong)
        nexts = list(_steps(rules, scope, world))
        for name, after in nexts:
            if after not in came_from:
                came_from[after] = (world, name)
                queue.append(after)
        leads_to[world] = [after for name, after in nexts if not name.startswith(RESCUE)]
    if stuck := _stuck(leads_to):
        return Found(
            worlds=len(came_from),
            story=_story(came_from, stuck),
            wrong="something never ends by itself",
        )
    return Found(worlds=len(came_from))


def _story(came_from: dict[World, tuple[World, str] | None], world: World) -> tuple[str, ...]:
    names = []
    while (origin := came_from[world]) is not None:
        world, name = origin
        names.append(name)
    return tuple(reversed(names))


def _broken(world: World) -> str | None:
    for job, row in enumerate(world.rows):
        if row.attempts > ATTEMPTS:
            return "more attempts than allowed"
        if job in world.cancelled and row.status in (DONE, FAILED):
            return "a cancel that returned was not final"
        if job in world.free_locks and row.status not in OVER:
            return "a lock was freed under its holder"
    if world.fired > 1:
        return "a gate fired twice"
    if world.fired and any(row.status not in OVER for row in world.rows):
        return "a gate fired before the last job was over"
    return None


def _stuck(leads_to: dict[World, list[World]]) -> World | None:
    """A world from which no story leads to the end, where every job is over and the gate has
    fired.
    """
    comes_from: dict[World, list[World]] = {}
    for world, nexts in leads_to.items():
        for after in nexts:
            comes_from.setdefault(after, []).append(world)
    good = {w for w in leads_to if w.fired == 1 and all(r.status in OVER for r in w.rows)}
    queue = deque(good)
    while queue:
        for world in comes_from.get(queue.popleft(), ()):
            if world not in good:
                good.add(world)
                queue.append(world)
    return next((w for w in leads_to if w not in good), None)


# what may happen next


def _steps(rules: Rules, scope: Scope, world: World) -> Iterator[Step]:
    for job, row in enumerate(world.rows):
        yield from _by_itself(rules, world, job, row)
        if scope.successors and row.status == RUNNING and row.holder is not None:
            yield (
                f"the successor of {'AB'[row.holder]} takes {job} over",
                _take_over(rules, world, job),
            )
        if row.status == READY:
            for worker, mind in enumerate(world.minds):
                if mind is None and (worker == job or not scope.own_jobs):
                    yield f"{'AB'[worker]} claims {job}", _claim(rules, scope, world, worker, job)
    for worker, mind in enumerate(world.minds):
        if mind is not None:
            yield from _by_worker(rules, scope, world, worker, mind)
    for letter in world.post:
        yield from _delivered(rules, world, letter)
    for place, (job, last) in enumerate(world.open_ends):
        yield f"the end of {job} commits", _commit(world, place, last)


def _by_itself(rules: Rules, world: World, job: int, row: Row) -> Iterator[Step]:
    if row.status == RUNNING and not row.lapsed:
        yield f"the lease of {job} lapses", _put(world, job, row._replace(lapsed=True, before=None))
    if row.status == RUNNING and row.lapsed and rules.reaper_looks_again:
        yield f"the reaper takes {job}", _reap(rules, world, job)
    if (
        row.status == RUNNING
        and row.lapsed
        and not rules.reaper_looks_again
        and job not in world.doomed
    ):
        yield f"the reaper reads {job}", world._replace(doomed=world.doomed | {job})
    if job in world.doomed:
        after = world._replace(doomed=world.doomed - {job})
        yield (
            f"the reaper takes {job}",
            _reap(rules, after, job) if row.status == RUNNING else after,
        )
    if row.status == PARKED:
        yield f"{job} is due", _put(world, job, row._replace(status=READY))
    if row.status not in OVER and not any(j == job for j, _ in world.open_ends):
        yield f"{RESCUE} {job}", _cancel(rules, world, job, row)
    if row.before is not None and row.status == RUNNING:
        status, attempts, counter = row.before
        lost = Row(status=status, attempts=attempts, counter=counter)
        yield f"the claim of {job} is lost in a crash", _put(world, job, lost)


def _by_worker(rules: Rules, scope: Scope, world: World, worker: int, mind: Mind) -> Iterator[Step]:
    name = "AB"[worker]
    yield f"{name} forgets {mind.job}", _think(world, worker, None)
    yield f"{name} renews {mind.job}", _renew(rules, world, mind)
    letter = mind._replace(asked=False)
    if letter not in world.post and len(world.post) < scope.letters:
        asked = _think(world, worker, mind._replace(asked=True))
        yield f"{name} sends its end of {mind.job}", asked._replace(post=world.post | {letter})
    if scope.giving_up and not mind.asked:
        yield (
            f"{name} releases {mind.job}",
            _give_up(rules, world, mind, READY, rules.release_takes_the_fence),
        )
        yield (
            f"{name} parks {mind.job}",
            _give_up(rules, world, mind, PARKED, rules.park_takes_the_fence),
        )


def _delivered(rules: Rules, world: World, letter: Mind) -> Iterator[Step]:
    """An end arrives. It may be the last copy or not, and the answer may reach the worker or
    not.
    """
    done, answer = _end(rules, world, letter)
    gone = done._replace(post=done.post - {letter})
    yield f"the end of {letter.job} arrives, its reply is lost", gone
    yield f"the end of {letter.job} arrives, a copy stays on the way", done
    for worker, mind in enumerate(world.minds):
        if mind is not None and mind.asked and mind._replace(asked=False) == letter:
            replies = _think(gone, worker, None)
            stands = (
                world.rows[letter.job].ended_by == letter.claim
                or gone.rows[letter.job].ended_by == letter.claim
            )
            if answer == "stale" and stands:
                replies = replies._replace(
                    wrong="a worker was told that it was stale, and its end stands"
                )
            yield f"the end of {letter.job} arrives, {'AB'[worker]} hears {answer}", replies


# the rules


def _accepts(rules: Rules, row: Row, mind: Mind) -> bool:
    if rules.fence == "state":
        return row.status == RUNNING
    return row.token == mind.token and row.status not in OVER


def _usurped(world: World, row: Row, mind: Mind, what: str) -> World:
    return world if row.claim == mind.claim else world._replace(wrong=f"a stale attempt {what}")


def _claim(rules: Rules, scope: Scope, world: World, worker: int, job: int) -> World:
    row = world.rows[job]
    claim, counter = _unused(world), row.counter + 1
    token = {"random": claim, "counter": counter, "attempt number": row.attempts + 1, "state": 0}[
        rules.fence
    ]
    before = (row.status, row.attempts, row.counter) if scope.lost_claims else None
    counter_kept = counter if rules.fence == "counter" else 0
    holder = worker if scope.successors else None
    taken = Row(
        RUNNING,
        token,
        claim,
        attempts=row.attempts + 1,
        counter=counter_kept,
        holder=holder,
        before=before,
    )
    return _think(_put(world, job, taken), worker, Mind(job, token, claim))


def _unused(world: World) -> int:
    """Claims are only ever told apart, so the name of one that nobody remembers can be given
    again.
    """
    claims = {m.claim for m in (*world.minds, *world.post) if m is not None}
    claims.update(c for row in world.rows for c in (row.claim, row.ended_by) if c is not None)
    return next(c for c in range(1, 100) if c not in claims)


def _end(rules: Rules, world: World, letter: Mind) -> tuple[World, str]:
    job, row = letter.job, world.rows[letter.job]
    if not _accepts(rules, row, letter) or any(j == job for j, _ in world.open_ends):
        seen = rules.silence_is_looked_up and row.ended_by == letter.claim
        if not rules.gate_counts_live_members and row.status in OVER:
            world = _count(world)
        if not rules.lock_is_the_row and row.status not in OVER:
            world = world._replace(free_locks=world.free_locks | {job})
        return world, "repeated" if seen else "stale"
    world = _usurped(world, row, letter, "ended the job")
    ended = _put(
        world,
        job,
        row._replace(
            status=DONE, token=None, claim=None, holder=None, ended_by=letter.claim, before=None
        ),
    )
    return _settle(rules, ended, job), "done"


def _settle(rules: Rules, world: World, job: int) -> World:
    """Where a gate only looks at what others have committed, an end and its commit are two
    steps.
    """
    if not rules.gate_counts_live_members:
        return _count(world)
    if rules.gate_looks_after_its_lock:
        return _fire(world)
    others = [j for j, row in enumerate(world.rows) if j != job]
    last = all(
        world.rows[j].status in OVER and j not in {k for k, _ in world.open_ends} for j in others
    )
    return world._replace(open_ends=(*world.open_ends, (job, last)))


def _commit(world: World, place: int, last: bool) -> World:
    rest = tuple(e for i, e in enumerate(world.open_ends) if i != place)
    return world._replace(open_ends=rest, fired=world.fired + last)


def _fire(world: World) -> World:
    return (
        world._replace(fired=1)
        if all(row.status in OVER for row in world.rows) and not world.fired
        else world
    )


def _count(world: World) -> World:
    counted = world.counted + 1
    return world._replace(counted=counted, fired=world.fired + (counted == len(world.rows)))


def _renew(rules: Rules, world: World, mind: Mind) -> World:
    row = world.rows[mind.job]
    if row.status != RUNNING or (rules.heartbeat_is_fenced and row.token != mind.token):
        return world
    renewed = _put(world, mind.job, row._replace(lapsed=False))
    return _usurped(renewed, row, mind, "extended another's lease") if row.lapsed else renewed


def _give_up(rules: Rules, world: World, mind: Mind, status: str, takes_the_fence: bool) -> World:
    """The answer is lost and the worker goes on believing; one that heard it is one that
    forgets.
    """
    row = world.rows[mind.job]
    if not _accepts(rules, row, mind) or row.status != RUNNING:
        return world
    token = None if takes_the_fence else row.token
    ended = Row(status, token, None, attempts=row.attempts - 1, counter=row.counter)
    return _usurped(_put(world, mind.job, ended), row, mind, "gave the job up")


def _reap(rules: Rules, world: World, job: int) -> World:
    row = world.rows[job]
    if not row.lapsed:
        world = world._replace(wrong="the reaper took a job whose lease was renewed")
    if row.attempts >= ATTEMPTS and rules.reaper_counts_attempts:
        return _failed(rules, world, job)
    return _put(world, job, Row(READY, attempts=row.attempts, counter=row.counter))


def _take_over(rules: Rules, world: World, job: int) -> World:
    """A process of the holder's name registers: whatever is left of the lease, the attempt is
    over."""
    row = world.rows[job]
    if row.attempts >= ATTEMPTS and rules.take_over_counts_attempts:
        return _failed(rules, world, job)
    token = None if rules.take_over_takes_the_fence else row.token
    return _put(world, job, Row(READY, token, attempts=row.attempts, counter=row.counter))


def _failed(rules: Rules, world: World, job: int) -> World:
    failed = world.rows[job]._replace(
        status=FAILED, token=None, claim=None, holder=None, before=None
    )
    return _settle(rules, _put(world, job, failed), job)


def _cancel(rules: Rules, world: World, job: int, row: Row) -> World:
    notified = world._replace(cancelled=world.cancelled | {job})
    if row.status == RUNNING and not rules.cancel_takes_the_fence:
        return notified
    ended = row._replace(status=CANCELLED, token=None, claim=None, holder=None, before=None)
    return _settle(rules, _put(notified, job, ended), job)


def _put(world: World, job: int, row: Row) -> World:
    return world._replace(rows=(*world.rows[:job], row, *world.rows[job + 1 :]))


def _think(world: World, worker: int, mind: Mind | None) -> World:
    return world._replace(minds=(*world.minds[:worker], mind, *world.minds[worker + 1 :]))
