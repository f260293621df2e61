"""Our rules survive every story; each rule that some queue has instead is broken by one, which the
message tells."""

from __future__ import annotations

import pytest

from tests.proof.model_check import Rules, Scope, check
from tests.proof.proof_db import DEPTH

ONE = Scope()
PAIR = Scope(jobs=2, letters=1, lost_claims=False, own_jobs=True)
SMALL_PAIR = Scope(jobs=2, letters=1, lost_claims=False, own_jobs=True, giving_up=False)
NO_CRASH = Scope(lost_claims=False)

STALE = "a stale attempt"
WITNESSES = [
    pytest.param(Rules(fence="state"), NO_CRASH, STALE, id="a fence by state"),
    pytest.param(
        Rules(fence="counter"), ONE, STALE, id="a fence by counter when a claim can be lost"
    ),
    pytest.param(
        Rules(fence="attempt number"),
        NO_CRASH,
        STALE,
        id="a fence by attempt number when one is given back",
    ),
    pytest.param(
        Rules(heartbeat_is_fenced=False),
        NO_CRASH,
        "extended another's lease",
        id="an unfenced heartbeat",
    ),
    pytest.param(
        Rules(reaper_looks_again=False),
        ONE,
        "lease was renewed",
        id="a reaper that reads first, writes later",
    ),
    pytest.param(
        Rules(reaper_counts_attempts=False),
        ONE,
        "more attempts",
        id="a reaper that always requeues",
    ),
    pytest.param(
        Rules(cancel_takes_the_fence=False), ONE, "not final", id="a cancel that only asks"
    ),
    pytest.param(
        Rules(release_takes_the_fence=False), ONE, STALE, id="a release that keeps the fence"
    ),
    pytest.param(Rules(park_takes_the_fence=False), ONE, STALE, id="a park that keeps the fence"),
    pytest.param(
        Rules(silence_is_looked_up=False), ONE, "its end stands", id="no row changed means stale"
    ),
    pytest.param(
        Rules(take_over_takes_the_fence=False), ONE, STALE, id="a take-over that keeps the fence"
    ),
    pytest.param(
        Rules(take_over_counts_attempts=False),
        ONE,
        "more attempts",
        id="a take-over that always requeues",
    ),
    pytest.param(
        Rules(lock_is_the_row=False), ONE, "a lock was freed", id="a lock that is freed by name"
    ),
    pytest.param(
        Rules(gate_counts_live_members=False),
        PAIR,
        "before the last",
        id="a gate that counts arrivals",
    ),
    pytest.param(
        Rules(gate_looks_after_its_lock=False),
        SMALL_PAIR,
        "never ends",
        id="a gate that looks before its lock",
    ),
]


@pytest.mark.parametrize(
    "scope", [ONE, PAIR] if DEPTH == 1 else [ONE, PAIR, Scope(jobs=2, lost_claims=False)]
)
def test_no_story_breaks_a_promise_of_ours(scope: Scope) -> None:
    violations = check(Rules(), scope)
    assert violations.wrong is None, str(violations)
    assert violations.worlds > 10_000


@pytest.mark.parametrize(("rules", "scope", "wrong"), WITNESSES)
def test_a_story_breaks(rules: Rules, scope: Scope, wrong: str) -> None:
    violations = check(rules, scope)
    assert wrong in str(violations.wrong), str(violations)
    assert len(violations.story) <= 10, str(violations)
