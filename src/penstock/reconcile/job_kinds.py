"""The kinds of jobs of a run, each declared once: queue, lease, attempts, handler.

The control plane and the workers read them; a handler is imported where it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.jobs.kinds import JobKind, KindPolicy
from penstock.reconcile.runs import payloads

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.engines.contract import EngineLimits
    from penstock.jobs.handler import Handler
    from penstock.reconcile.control_plane import ReconcileControlPlane
    from penstock.storage.provider import ObjectStoreProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileHandlerServices:
    connect: Callable[[], ReconcileControlPlane]
    object_store: ObjectStoreProvider
    engine_limits: EngineLimits
    candidates_per_row: int


def _stage_planner(services: ReconcileHandlerServices) -> Handler:
    from penstock.reconcile.staging.handlers import StagePlanner

    return StagePlanner(services.connect)


def _chunk_stager(services: ReconcileHandlerServices) -> Handler:
    from penstock.reconcile.staging.handlers import ChunkStager

    return ChunkStager(services.connect, services.object_store)


def _matcher(services: ReconcileHandlerServices) -> Handler:
    from penstock.reconcile.matching.handlers import Matcher
    from penstock.reconcile.matching.matcher import MatchLimits

    return Matcher(
        services.connect,
        services.object_store,
        limits=services.engine_limits,
        match_limits=MatchLimits(per_row=services.candidates_per_row),
    )


def _run_cleaner(services: ReconcileHandlerServices) -> Handler:
    from penstock.reconcile.matching.handlers import RunCleaner

    return RunCleaner(services.object_store)


def _run_starter(services: ReconcileHandlerServices) -> Handler:
    from penstock.reconcile.runs.callbacks import RunStarter

    return RunStarter(services.connect)


def _callback_sender(services: ReconcileHandlerServices) -> Handler:
    from penstock.reconcile.runs.callbacks import RunCaller

    return RunCaller(services.connect)


JOB_KINDS: tuple[JobKind[ReconcileHandlerServices], ...] = (
    JobKind(
        policy=KindPolicy(
            name=payloads.STAGE_PLAN,
            queue="stage",
            lease=120,
            heartbeat=30,
            timeout=7200,
            max_attempts=3,
        ),
        handler=_stage_planner,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.STAGE_CHUNK,
            queue="stage",
            lease=90,
            heartbeat=30,
            timeout=3600,
            max_attempts=3,
        ),
        handler=_chunk_stager,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.MATCH, queue="match", lease=90, heartbeat=30, timeout=7200, max_attempts=3
        ),
        handler=_matcher,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.START,
            queue="stage",
            priority=4,
            lease=60,
            heartbeat=15,
            timeout=300,
            max_attempts=5,
        ),
        handler=_run_starter,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.CALLBACK,
            queue="publish",
            priority=3,
            lease=60,
            heartbeat=15,
            timeout=300,
            max_attempts=8,
        ),
        handler=_callback_sender,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.CLEAN,
            queue="publish",
            priority=8,
            lease=60,
            heartbeat=15,
            timeout=1800,
            max_attempts=5,
        ),
        handler=_run_cleaner,
    ),
)
