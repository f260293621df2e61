"""Packages with tables, in the order of their migrations."""

from __future__ import annotations

ROOMS_WITH_TABLES = (
    "penstock.jobs.migrations",
    "penstock.accounts.migrations",
    "penstock.sources.migrations",
    "penstock.graphs.migrations",
    "penstock.maintenance.migrations",
    "penstock.reconcile.migrations",
)
