"""What is measured, with how many jobs: enough for about a second of each, whatever its speed."""

from __future__ import annotations

from dataclasses import dataclass, field

OURS = "penstock"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """`jobs` by scenario; a scenario that is missing cannot be run, and its module says why."""

    name: str
    module: str
    package: str
    jobs: dict[str, int] = field(default_factory=dict)


def _peer(name: str, package: str | None = None, **jobs: int) -> System:
    return System(name=name, module=f"peers.{name}", package=package or name, jobs=jobs)


SYSTEMS = (
    System(
        name=OURS,
        module="ours",
        package="penstock",
        jobs={"drain": 20_000, "singles": 8_000, "alike": 8_000, "own": 4_000, "bulk": 50_000},
    ),
    _peer("awa", drain=10_000, singles=4_000, bulk=50_000),
    _peer("pgqueuer", drain=10_000, singles=1_600, bulk=50_000),
    _peer("oban", drain=1_600, singles=1_600, bulk=10_000),
    _peer("chancy", drain=1_600, singles=1_600, bulk=5_000),
    _peer("procrastinate", drain=300, singles=800, bulk=10_000),
    _peer("dbos", drain=800, singles=800, bulk=3_000),
    _peer("absurd", package="absurd_sdk", drain=800, singles=1_600, bulk=5_000),
)
