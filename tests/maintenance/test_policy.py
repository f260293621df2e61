from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.maintenance.policies.model import Policy, read


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 7, 1, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("window", "zone", "inside", "outside"),
    [
        (("09:00", "17:00"), "UTC", [at(9), at(16, 59)], [at(8, 59), at(17)]),
        (("22:00", "06:00"), "UTC", [at(22), at(0), at(5, 59)], [at(21, 59), at(6)]),
        (("22:00", "06:00"), "Europe/Vienna", [at(20), at(3, 59)], [at(19, 59), at(4)]),
    ],
)
def test_a_window_begins_with_its_first_minute_and_ends_before_its_last(
    window: tuple[str, str], zone: str, inside: list[datetime], outside: list[datetime]
) -> None:
    definition = {
        "name": "x",
        "pattern": "*",
        "window": {"from": window[0], "to": window[1]},
        "zone": zone,
    }
    policy = read(definition)
    assert [policy.open_at(now) for now in inside] == [True] * len(inside)
    assert [policy.open_at(now) for now in outside] == [False] * len(outside)


def test_each_trigger_fires_at_its_limit_and_not_before() -> None:
    busy = Policy(name="x", pattern="*", commits=5)
    old = Policy(name="x", pattern="*", every=timedelta(hours=1))
    sick = Policy(name="x", pattern="*", health_below=50)
    nothing = {"score": 50, "since": timedelta(minutes=59), "commits": 4}
    assert [policy.due(**nothing) for policy in (busy, old, sick)] == [None] * 3
    assert busy.due(**nothing | {"commits": 5}) == "5 commits since the last time"
    assert old.due(**nothing | {"since": timedelta(hours=1)}) is not None
    assert sick.due(**nothing | {"score": 49}) == "health 49 is below 50"
    assert old.due(**nothing | {"since": None}) == "never maintained"
