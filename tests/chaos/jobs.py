"""What a schedule asks for, drawn from its seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.jobs.model import GroupSpec, JobSpec

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class Order:
    """Jobs enqueued alone, and groups with their members; `doomed` are those that will be
    cancelled, by place."""

    jobs: list[JobSpec]
    groups: list[tuple[GroupSpec, list[JobSpec]]]
    doomed: list[int]


def draw(rng: Random, name: str, locks: int) -> Order:
    jobs = [_job(rng, f"{name}:{n}", locks) for n in range(rng.randint(6, 12))]
    groups = [_group(rng, f"{name}:group{n}") for n in range(rng.randint(0, 2))]
    doomed = [n for n in range(len(jobs)) if rng.random() < 0.1]
    return Order(jobs, groups, doomed)


def _job(rng: Random, key: str, locks: int) -> JobSpec:
    kind = rng.choices(
        [
            "storm.work",
            "storm.park",
            "storm.flaky",
            "storm.blocked",
            "storm.strict",
            "storm.poison",
        ],
        [50, 15, 15, 6, 10, 2],
    )[0]
    lock = f"lock-{rng.randrange(locks)}" if rng.random() < 0.2 else None
    run_in = timedelta(seconds=rng.uniform(0.05, 0.6)) if rng.random() < 0.15 else None
    return JobSpec(
        kind=kind,
        payload=_payload(rng, kind),
        unique_key=key,
        lock_key=lock,
        run_in=run_in,
        priority=rng.randrange(10),
    )


def _payload(rng: Random, kind: str) -> dict[str, float]:
    pause = rng.uniform(0.005, 0.12)
    match kind:
        case "storm.park":
            return {"polls": rng.randint(1, 3), "pause": pause}
        case "storm.flaky":
            return {"failures": rng.randint(1, 2), "pause": pause}
        case "storm.spawn":
            return {"children": rng.randint(1, 3), "pause": pause}
        case _:
            return {"steps": rng.randint(1, 6), "pause": pause}


def _group(rng: Random, name: str) -> tuple[GroupSpec, list[JobSpec]]:
    kinds = ["storm.work", "storm.flaky", "storm.park", "storm.spawn"] + (
        ["storm.poison"] if rng.random() < 0.1 else []
    )
    members = [
        JobSpec(kind=k, payload=_payload(rng, k)) for k in rng.choices(kinds, k=rng.randint(2, 5))
    ]
    after = JobSpec(kind="storm.after", payload={"steps": 1, "pause": 0.01, "group": name})
    group = GroupSpec(
        name=name, on_success=[after], on_failure=[after], deadline_in=timedelta(seconds=300)
    )
    return group, members
