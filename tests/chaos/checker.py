"""The checker: judges a history after the storm, promise by promise. It shares no code with the
kernel."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.chaos.history import History

SUCCEEDED, FAILED, CANCELLED = 10, 11, 12


@dataclass(frozen=True, slots=True)
class Judgement:
    jobs: int
    attempts: int
    stale_refused: int
    taken_over: int = 0
    double_ends: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    leaked_locks: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        return self.double_ends + self.lost + self.leaked_locks + self.other


def judge(history: History) -> Judgement:
    return Judgement(
        jobs=len(history.accepted),
        attempts=len(history.attempts) + sum(o["attempt_id"] is not None for o in history.outcomes),
        stale_refused=history.stale,
        taken_over=sum(
            a.get("how") == "lapsed" and a.get("detail") is not None for a in history.attempts
        ),
        double_ends=double_ends(history),
        lost=lost(history),
        leaked_locks=leaked_locks(history),
        other=[
            *gates(history),
            *cancels(history),
            *budgets(history),
            *fences(history),
            *zombies(history),
        ],
    )


def double_ends(history: History) -> list[str]:
    """Promise 1: one end a job, and no second attempt was ever told that it wrote it."""
    ends = Counter(o["job_id"] for o in history.outcomes)
    problems = [f"job {job} has {count} ends" for job, count in ends.items() if count > 1]
    winners: dict[int, set[str]] = defaultdict(set)
    for (job, attempt), verdicts in history.verdicts.items():
        if verdicts & {"done", "repeated"}:
            winners[job].add(attempt)
    problems += [
        f"job {job}: attempts {sorted(a)} were each told they ended it"
        for job, a in winners.items()
        if len(a) > 1
    ]
    ended_by = {o["job_id"]: o["attempt_id"] for o in history.outcomes}
    for job, attempts in winners.items():
        if attempts != {ended_by.get(job)}:
            problems.append(
                f"job {job}: {sorted(attempts)} was told it ended it, the table says"
                f" {ended_by.get(job)}"
            )
    return problems


def lost(history: History) -> list[str]:
    """Promise 2: what was accepted is over now, and nothing is left in the queue."""
    ended = {o["job_id"] for o in history.outcomes}
    problems = [
        f"job {job} was accepted and has no end" for job in history.accepted if job not in ended
    ]
    problems += [
        f"job {row['job_id']} is still live (status {row['status']})" for row in history.live
    ]
    job_ids = {row["job_id"] for row in history.jobs}
    problems += [
        f"job {job} was accepted and is not in the table"
        for job in history.accepted
        if job not in job_ids
    ]
    return problems


def leaked_locks(history: History) -> list[str]:
    """Promise 3: no lock is left, and the spans of jobs that shared one never overlap."""
    problems = [
        f"lock {row['lock_key']} is still held by job {row['job_id']}"
        for row in history.live
        if row["lock_key"]
    ]
    ended = {o["job_id"]: o["finished_at"] for o in history.outcomes}
    spans: dict[str, list[tuple[Any, Any, int]]] = defaultdict(list)
    for row in history.jobs:
        if row["lock_key"] and row["job_id"] in ended:
            spans[row["lock_key"]].append((row["created_at"], ended[row["job_id"]], row["job_id"]))
    for key, intervals in spans.items():
        intervals.sort()
        for (_, end, first), (start, _, second) in pairwise(intervals):
            if start < end:
                problems.append(f"lock {key}: jobs {first} and {second} held it at once")
    return problems


def gates(history: History) -> list[str]:
    """Promise 4: every gate fired, and its follow-up was enqueued once."""
    problems = [
        f"group {g['group_id']} never fired" for g in history.fired if g["status"] < SUCCEEDED
    ]
    followers = Counter(
        json.loads(j["payload"])["group"] for j in history.jobs if j["kind"] == "storm.after"
    )
    problems += [
        f"group {group} opened {count} follow-ups"
        for group, count in followers.items()
        if count > 1
    ]
    fired = {g["name"] for g in history.fired if g["status"] >= SUCCEEDED}
    return problems + [f"{name} fired and opened nothing" for name in fired if followers[name] == 0]


def cancels(history: History) -> list[str]:
    """Promise 5: a cancel that returned is final."""
    status = {o["job_id"]: o["status"] for o in history.outcomes}
    return [
        f"job {job} was cancelled, yet ended {status.get(job)}"
        for job in history.cancelled
        if status.get(job) != CANCELLED
    ]


def budgets(history: History) -> list[str]:
    """Promise 6: attempts ≤ max_attempts."""
    most = {row["job_id"]: row["max_attempts"] for row in history.jobs}
    used = [(o["job_id"], o["attempt_no"]) for o in history.outcomes]
    used += [(a["job_id"], a["attempt_no"]) for a in history.attempts]
    return [
        f"job {job} used attempt {number} of {most[job]}"
        for job, number in used
        if number > most[job]
    ]


def fences(history: History) -> list[str]:
    """No fence ended twice: an attempt that was taken off its job, or gave it back, did not end it
    as well."""
    seen = Counter((a["job_id"], a["attempt_id"]) for a in history.attempts)
    seen.update((o["job_id"], o["attempt_id"]) for o in history.outcomes if o["attempt_id"])
    return [
        f"job {job}: fence {fence} ended twice" for (job, fence), count in seen.items() if count > 1
    ]


def zombies(history: History) -> list[str]:
    """Promise 7: who was told `stale` has written nothing: the end carries another fence, or
    none.
    """
    ended_by = {o["job_id"]: o["attempt_id"] for o in history.outcomes}
    return [
        f"job {job}: attempt {attempt} was told stale, yet the end is its own"
        for (job, attempt), verdicts in history.verdicts.items()
        if "stale" in verdicts
        and not verdicts & {"done", "repeated"}
        and ended_by.get(job) == attempt
    ]
