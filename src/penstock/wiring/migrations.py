"""Packages with tables, in the order of their migrations."""

from __future__ import annotations

MIGRATION_PACKAGES = (
    "penstock.jobs.migrations",
    "penstock.jobs.nats.migrations",
    "penstock.accounts.migrations",
    "penstock.sources.migrations",
    "penstock.graphs.migrations",
    "penstock.maintenance.migrations",
    "penstock.reconcile.migrations",
)
