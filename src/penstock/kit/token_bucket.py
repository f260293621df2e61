"""Token buckets in memory: how often each of many keys may do something, on average and at once."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MOST_KEYS = 20_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class TokenBuckets:
    """A bucket for each key: `burst` tokens when it is full, `rate` more a second.

    The keys that were used longest ago are dropped beyond `most_keys`, so memory is bounded.
    """

    def __init__(
        self,
        *,
        rate: float,
        burst: float,
        most_keys: int = MOST_KEYS,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._most_keys = most_keys
        self._ticks = ticks
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()

    def take(self, key: Hashable) -> float:
        """Take a token: 0 if there was one, else the seconds until there is one."""
        bucket = self._filled(key)
        if bucket.tokens < 1:
            return (1 - bucket.tokens) / self._rate
        bucket.tokens -= 1
        return 0.0

    def wait(self, key: Hashable) -> float:
        """The seconds until there is a token; none is taken."""
        if key not in self._buckets:
            return 0.0
        bucket = self._filled(key)
        return 0.0 if bucket.tokens >= 1 else (1 - bucket.tokens) / self._rate

    def __len__(self) -> int:
        return len(self._buckets)

    def _filled(self, key: Hashable) -> _Bucket:
        now = self._ticks()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, now)
            if len(self._buckets) > self._most_keys:
                self._buckets.popitem(last=False)
            return bucket
        self._buckets.move_to_end(key)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.filled_at) * self._rate)
        bucket.filled_at = now
        return bucket
