"""The kinds of job that a deployment knows, with their leases, attempts and queues.

A lease is a few heartbeats long: whoever is killed must not block a table or a run for longer than
that. `export` alone keeps the ten minutes that its API promises, for workers of others claim such
jobs without ever sending a heartbeat.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.jobs.kinds import Backoff, KindPolicy, Kinds
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

PROBE = KindPolicy(
    name="probe", lease=4, heartbeat=1, timeout=600, max_attempts=5, backoff=Backoff(base=0.2, factor=2.0, cap=5.0)
)
"""A job that only shows that jobs go through."""

UNLOAD = KindPolicy(
    name="unload",
    queue="export",
    lease=60,
    heartbeat=15,
    timeout=7200,
    max_attempts=3,
    cleanup_kind="cancel_query",
)
"""An export that Trino writes. A worker holds it only while it asks after the query, and Trino gives up a query that
nobody asks after for five minutes: whoever takes over from a worker that died must come well before that."""

REMOTE_MAINTENANCE = KindPolicy(
    name="remote_maintenance",
    queue="maintenance",
    lease=60,
    heartbeat=15,
    timeout=14_400,
    max_attempts=3,
    on_sigterm="fail",
    cleanup_kind="cancel_maintenance",
)
"""Maintenance that Trino does: held only for a look at its query, as an unload is."""


def default_kinds(leases: Mapping[str, int] | None = None) -> Kinds:
    """With `leases`, some kinds hold their jobs for other spans than ours."""
    policies = {policy.name: policy for policy in _policies()}
    for name, lease in (leases or {}).items():
        if name not in policies:
            raise InvalidInput(
                f"lease_seconds: there is no job kind {name[:80]!r}.", hint=f"Known kinds: {', '.join(policies)}."
            )
        policies[name] = replace(policies[name], lease=lease)
    return Kinds(policies.values())


def _policies() -> tuple[KindPolicy, ...]:
    return (
        KindPolicy(
            name="export",
            queue="export",
            lease=600,
            heartbeat=30,
            timeout=7200,
            max_attempts=3,
            cleanup_kind="cancel_query",
        ),
        UNLOAD,
        KindPolicy(name="publish", queue="publish", priority=2, lease=60, heartbeat=15, timeout=1800, max_attempts=5),
        KindPolicy(
            name="cancel_query", queue="publish", priority=1, lease=60, heartbeat=15, timeout=300, max_attempts=5
        ),
        KindPolicy(
            name="forget_table", queue="publish", priority=7, lease=60, heartbeat=15, timeout=300, max_attempts=5
        ),
        KindPolicy(name="sweep", queue="publish", priority=8, lease=120, heartbeat=30, timeout=14_400, max_attempts=2),
        KindPolicy(name="erase", queue="publish", priority=7, lease=60, heartbeat=15, timeout=3600, max_attempts=5),
        KindPolicy(name="stage_plan", queue="stage", lease=120, heartbeat=30, timeout=7200, max_attempts=3),
        KindPolicy(name="stage_chunk", queue="stage", lease=90, heartbeat=30, timeout=3600, max_attempts=3),
        KindPolicy(name="match", queue="match", lease=90, heartbeat=30, timeout=7200, max_attempts=3),
        KindPolicy(name="run_start", queue="stage", priority=4, lease=60, heartbeat=15, timeout=300, max_attempts=5),
        KindPolicy(
            name="run_callback", queue="publish", priority=3, lease=60, heartbeat=15, timeout=300, max_attempts=8
        ),
        KindPolicy(name="run_clean", queue="publish", priority=8, lease=60, heartbeat=15, timeout=1800, max_attempts=5),
        KindPolicy(
            name="maintenance",
            queue="maintenance",
            lease=90,
            heartbeat=30,
            timeout=14_400,
            max_attempts=3,
            on_sigterm="fail",
        ),
        REMOTE_MAINTENANCE,
        KindPolicy(
            name="cancel_maintenance",
            queue="maintenance",
            priority=1,
            lease=60,
            heartbeat=15,
            timeout=300,
            max_attempts=5,
        ),
        PROBE,
    )
