"""A bucket gives its burst at once, then its rate, and forgets whom it has not seen for long."""

from __future__ import annotations

import pytest

from penstock.kit.token_bucket import TokenBuckets


class Ticks:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


def test_a_full_bucket_gives_its_burst_at_once_and_then_says_how_long_to_wait(ticks: Ticks) -> None:
    buckets = TokenBuckets(rate=2, burst=3, ticks=ticks)
    assert [buckets.take("ann") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("bob") == 0, "each key has a bucket of its own"


def test_a_bucket_fills_at_its_rate_and_no_further_than_its_burst(ticks: Ticks) -> None:
    buckets = TokenBuckets(rate=2, burst=3, ticks=ticks)
    for _ in range(3):
        buckets.take("ann")
    ticks.now = 0.25
    assert buckets.take("ann") == pytest.approx(0.25)
    ticks.now = 0.5
    assert buckets.take("ann") == 0
    ticks.now = 1000
    assert [buckets.take("ann") for _ in range(4)] == [0, 0, 0, 0.5]


def test_to_ask_how_long_to_wait_takes_nothing(ticks: Ticks) -> None:
    buckets = TokenBuckets(rate=1, burst=1, ticks=ticks)
    assert (buckets.wait("ann"), len(buckets)) == (0, 0)
    assert buckets.take("ann") == 0
    assert [buckets.wait("ann") for _ in range(2)] == [1, 1]


def test_memory_is_bounded_by_the_keys_that_were_used_last(ticks: Ticks) -> None:
    buckets = TokenBuckets(rate=1, burst=1, most_keys=2, ticks=ticks)
    for key in ("ann", "bob", "ann", "eve"):
        buckets.take(key)
    assert len(buckets) == 2
    assert (buckets.wait("ann"), buckets.wait("eve"), buckets.wait("bob")) == (1, 1, 0)
