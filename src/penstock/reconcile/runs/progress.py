"""The progress of a run, from what its jobs report. No I/O: `repository` reads the jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import orjson

from penstock.jobs.model import Status
from penstock.reconcile.runs.model import Progress, RunStatus
from penstock.reconcile.runs.payloads import MATCH, STAGE_CHUNK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import asyncpg

    from penstock.reconcile.runs.model import Run


class Report(TypedDict, total=False):
    """What a job of a run reports while it works, or at its end."""

    stage: str
    rows: int
    percent: float


def progress_of(run: Run, jobs: Sequence[asyncpg.Record], now: datetime) -> Progress:
    over = [job for job in jobs if job["status"] is not None and Status(job["status"]).over]
    chunks = [job for job in jobs if job["kind"] == STAGE_CHUNK]
    rows = sum(_rows(job) for job in chunks)
    share = _share(run, jobs, chunks)
    return Progress(
        stage=_stage(run, jobs),
        rows=rows,
        percent=None if share is None else round(share, 1),
        eta_seconds=_eta(run, share, now),
        jobs=len(jobs),
        jobs_over=len(over),
    )


def _stage(run: Run, jobs: Sequence[asyncpg.Record]) -> str:
    if run.status is RunStatus.EXECUTING:
        match = next((job for job in jobs if job["kind"] == MATCH), None)
        report = _loaded(None if match is None else match["progress"])
        return report.get("stage", "matching")
    return str(run.status)


def _rows(job: asyncpg.Record) -> int:
    report = _loaded(job["result"]) or _loaded(job["progress"])
    return report.get("rows", 0)


def _share(
    run: Run, jobs: Sequence[asyncpg.Record], chunks: Sequence[asyncpg.Record]
) -> float | None:
    """Staging counts its chunks, matching its steps; half each if there are both."""
    if run.status is RunStatus.COMPLETED:
        return 100.0
    if run.status is RunStatus.STAGING:
        if not chunks:
            return 0.0
        return 50 * sum(_part(job) for job in chunks) / len(chunks)
    match = next((job for job in jobs if job["kind"] == MATCH), None)
    if match is None or run.status.over:
        return None
    done = _loaded(match["progress"]).get("percent", 0.0)
    return 50 + done / 2 if run.staging_group is not None else done


def _part(job: asyncpg.Record) -> float:
    if job["status"] is not None and Status(job["status"]).over:
        return 1.0
    report = _loaded(job["progress"])
    return min(0.99, report.get("percent", 0.0) / 100)


def _eta(run: Run, share: float | None, now: datetime) -> float | None:
    if share is None or not 0 < share < 100:
        return None
    spent = (now - run.created_at).total_seconds()
    return round(spent * (100 - share) / share, 1) if spent > 0 else None


def _loaded(text: str | None) -> Report:
    loaded: object = None if text is None else orjson.loads(text)
    return cast("Report", loaded) if isinstance(loaded, dict) else {}
