"""The job kinds of all workloads, as the control plane and workers read them.

A lease is a few heartbeats long: a killed worker must not block a table or a run for longer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.job_kinds import JOB_KINDS as SNAPSHOT_KINDS
from penstock.jobs.kinds import Kinds
from penstock.kit.errors import InvalidInput
from penstock.maintenance.job_kinds import JOB_KINDS as MAINTENANCE_KINDS
from penstock.reconcile.job_kinds import JOB_KINDS as RECONCILE_KINDS
from penstock.worker.probe import PROBE

if TYPE_CHECKING:
    from collections.abc import Mapping


def default_kinds(leases: Mapping[str, int] | None = None) -> Kinds:
    """All kinds; `leases` replaces the lease of some, in seconds."""
    declared = (
        *(kind.policy for kind in SNAPSHOT_KINDS),
        *(kind.policy for kind in RECONCILE_KINDS),
        *(kind.policy for kind in MAINTENANCE_KINDS),
        PROBE.policy,
    )
    policies = {policy.name: policy for policy in declared}
    for name, lease in (leases or {}).items():
        if name not in policies:
            raise InvalidInput(
                f"lease_seconds: there is no job kind {name[:80]!r}.",
                hint=f"Known kinds: {', '.join(policies)}.",
            )
        policies[name] = replace(policies[name], lease=lease)
    return Kinds(policies.values())
