"""What a worker can do, unless it is told otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engines.contract import EngineLimits
from penstock.graphs.order import CANCEL_QUERY, ERASE, EXPORT, FORGET_TABLE, PUBLISH, SWEEP, UNLOAD
from penstock.maintenance.order import CANCEL_REMOTE, MAINTENANCE, REMOTE
from penstock.reconcile.matching import MatchLimits
from penstock.reconcile.order import CALLBACK, CLEAN, MATCH, STAGE_CHUNK, STAGE_PLAN, START
from penstock.worker.depot import Depot
from penstock.worker.erasing import Eraser
from penstock.worker.exports import Aftercare, Exporter
from penstock.worker.handlers import Handlers
from penstock.worker.maintaining import Maintainer, RemoteCanceller
from penstock.worker.matching import Matcher, RunCleaner
from penstock.worker.plane import plane_factory
from penstock.worker.probe import PROBE, probe
from penstock.worker.publishing import Publisher
from penstock.worker.run_callbacks import RunCaller, RunStarter
from penstock.worker.staging import ChunkStager, StagePlanner
from penstock.worker.sweeping import StorageSweeper
from penstock.worker.unloads import Unloading

if TYPE_CHECKING:
    from penstock.kit.config import Settings


def default_handlers(settings: Settings) -> Handlers:
    planes, depot = plane_factory(settings), Depot(settings)
    match_limits = MatchLimits(per_row=settings.reconcile_candidates_per_row)
    engine_limits = EngineLimits(
        memory_bytes=settings.reconcile_memory_mb * 1024**2, spill_bytes=settings.reconcile_spill_mb * 1000**2
    )
    exporter, maintainer = Exporter(planes, depot), Maintainer(planes)
    return Handlers(
        {
            PROBE.name: probe,
            EXPORT: exporter,
            UNLOAD: exporter,
            PUBLISH: Publisher(planes, depot),
            CANCEL_QUERY: Aftercare(planes, depot, Unloading.cancel),
            FORGET_TABLE: Aftercare(planes, depot, Unloading.forget),
            SWEEP: StorageSweeper(planes, depot),
            MAINTENANCE: maintainer,
            REMOTE: maintainer,
            CANCEL_REMOTE: RemoteCanceller(planes),
            ERASE: Eraser(depot),
            STAGE_PLAN: StagePlanner(planes),
            STAGE_CHUNK: ChunkStager(planes, depot),
            MATCH: Matcher(planes, depot, limits=engine_limits, match_limits=match_limits),
            CLEAN: RunCleaner(depot),
            START: RunStarter(planes),
            CALLBACK: RunCaller(planes),
        }
    )
