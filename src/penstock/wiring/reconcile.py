"""Builds the reconciliation services: recipes, uploads, runs and their gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.services import Loops, Reconciliation
from penstock.guard.network_reach import Reach
from penstock.jobs.fair_share import FairShare
from penstock.kit.concurrency_limit import ConcurrencyLimit
from penstock.reconcile.recipes.repository import Recipes
from penstock.reconcile.runs.items import Items
from penstock.reconcile.runs.repository import MATCHED, STAGED, Runs
from penstock.reconcile.runs.service import RunService
from penstock.reconcile.staging.chunk_ends import CHUNKS_ENDED, ChunkEnds
from penstock.reconcile.uploads.parsing.parser import Parser
from penstock.reconcile.uploads.service import UploadExpiry, UploadQuota, Uploads
from penstock.storage.provider import ObjectStoreProvider

if TYPE_CHECKING:
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db
    from penstock.kit.loop import LoopMetrics
    from penstock.sources.repository import DataSources
    from penstock.wiring.settings import Settings

UPLOAD_EXPIRY_SECONDS = 3600.0


def reconcile_services(
    settings: Settings, db: Db, jobs: PgJobStore, sources: DataSources
) -> Reconciliation:
    share = FairShare(step=settings.fair_share_seconds)
    runs, object_store = (
        Runs(db, jobs, share=share, most_active=settings.active_runs_per_user),
        ObjectStoreProvider(settings),
    )
    jobs.gates.handle(STAGED, runs.staged, announce=CHUNKS_ENDED)
    jobs.gates.handle(MATCHED, runs.matched)
    policy = settings.outbound_policy
    reach = Reach(private=policy.private, allow=policy.allow)
    turns = ConcurrencyLimit(
        total=settings.uploads_at_once,
        per_user=settings.uploads_at_once_per_user,
        subject="uploads",
    )
    uploads = Uploads(db, object_store.open, Parser.of(settings), UploadQuota.of(settings), turns)
    service = RunService(runs, Recipes(db, jobs), uploads, sources, reach=reach)
    token = settings.service_token
    key = "" if token is None else token.get_secret_value()
    return Reconciliation(
        service=service,
        items=Items(db, jobs),
        chunk_ends=ChunkEnds(db, jobs.notifier),
        store=object_store.open,
        callback_key=key,
        outbound=policy,
    )


def reconciliation_loops(db: Db, reconciliation: Reconciliation, metrics: LoopMetrics) -> Loops:
    uploads = reconciliation.service.uploads
    return (UploadExpiry(db, uploads, every=UPLOAD_EXPIRY_SECONDS, metrics=metrics),)
