"""The kinds of jobs a storm is made of; leases are short so that a frozen worker loses them within
seconds."""

from __future__ import annotations

from penstock.jobs.kinds import KindPolicy
from penstock.kit.backoff import Backoff

_SHORT = {"queue": "storm", "lease": 2, "heartbeat": 1, "timeout": 30, "max_attempts": 50}
_FAST = Backoff(base=0.05, factor=1.5, cap=0.5)

KINDS = [
    KindPolicy(name="storm.work", backoff=_FAST, **_SHORT),
    KindPolicy(name="storm.park", backoff=_FAST, **_SHORT),
    KindPolicy(name="storm.flaky", backoff=_FAST, **_SHORT),
    KindPolicy(name="storm.blocked", backoff=_FAST, **_SHORT),
    KindPolicy(name="storm.spawn", backoff=_FAST, **_SHORT),
    KindPolicy(name="storm.after", backoff=_FAST, **_SHORT),
    KindPolicy(name="storm.poison", backoff=_FAST, **(_SHORT | {"max_attempts": 2})),
    KindPolicy(name="storm.strict", backoff=_FAST, on_sigterm="fail", **_SHORT),
]
