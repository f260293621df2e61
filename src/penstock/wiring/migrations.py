"""Which rooms have tables, in the order in which they are migrated."""

from __future__ import annotations

ROOMS_WITH_TABLES = (
    "penstock.jobs.migrations",
    "penstock.accounts.migrations",
    "penstock.sources.migrations",
    "penstock.graphs.migrations",
    "penstock.maintenance.migrations",
    "penstock.reconcile.migrations",
)
