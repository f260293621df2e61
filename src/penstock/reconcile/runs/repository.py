"""Runs in PostgreSQL: create, advance by gates, cancel, retry.

The row is written before any job. Staging is one job group: plans, and the chunks they add. Its
gate runs in the transaction that ends the last of them, collects the parts and enqueues the match;
the match's gate ends the run. Lock order for whatever ends several jobs: live rows first, then
groups, then the run.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

import orjson

from penstock.jobs.model import GroupSpec, JobSpec, Status
from penstock.jobs.waiters import Waiters
from penstock.kit import logging
from penstock.kit.clock import SYSTEM, Clock
from penstock.kit.errors import ConcurrencyLimit, InvalidState, NotFound, PenstockError
from penstock.kit.sqlfile import load
from penstock.reconcile.runs.model import Run, RunStatus
from penstock.reconcile.runs.payloads import (
    CALLBACK,
    CLEAN,
    MATCH,
    STAGE_PLAN,
    MatchPayload,
    StagePlanPayload,
)
from penstock.reconcile.runs.progress import progress_of
from penstock.reconcile.runs.side_input import as_requested, to_stage
from penstock.reconcile.staging.staged import cause, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import asyncpg

    from penstock.jobs.fair_share import FairShare
    from penstock.jobs.gates import Fired
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db, Tx
    from penstock.kit.json_value import JsonValue
    from penstock.reconcile.evidence.document import RunResult
    from penstock.reconcile.matching.decided import Key
    from penstock.reconcile.recipes.model import RecipeDocument
    from penstock.reconcile.runs.model import Progress
    from penstock.reconcile.runs.side_input import SideInput

SQL = load("penstock.reconcile.sql")
STAGED, MATCHED = "run_staged", "run_matched"
STAGE_QUEUE, MATCH_QUEUE = "stage", "match"
CHANNELS = ("runs",)
TOTAL = timedelta(seconds=7200)
MAX_ID = 2**63 - 1
MOST_ACTIVE = 50
_JSON = ("recipe", "parameters", "inputs", "result", "error")
log = logging.get(__name__)


class Runs:
    def __init__(
        self,
        db: Db,
        jobs: PgJobStore,
        *,
        timeout: timedelta = TOTAL,
        clock: Clock = SYSTEM,
        share: FairShare | None = None,
        most_active: int = MOST_ACTIVE,
    ) -> None:
        self._db = db
        self._jobs = jobs
        self._timeout = timeout
        self._clock = clock
        self._share = share
        self._most_active = most_active
        self._waiters = Waiters(jobs.notifier)

    async def add(
        self,
        *,
        owner: str,
        recipe: RecipeDocument,
        inputs: Mapping[str, SideInput],
        recipe_id: str | None = None,
        recipe_version: int | None = None,
        parameters: Mapping[str, JsonValue] | None = None,
        callback_url: str | None = None,
        retry_of: int | None = None,
        started_by: int | None = None,
    ) -> Run:
        """`inputs`: for each side either `files`, or what to read: `data_source_id` and `document`.

        A source is staged first, unless it is `native`: then the match reads it in place.
        """
        async with self._db.transaction() as tx:
            if started_by is not None and (
                there := await tx.value(SQL.run_started, started_by=started_by)
            ):
                return await self.get(there)
            await self._check_active(tx, owner)
            run_id: int = await tx.value(
                SQL.run_add,
                recipe_id=recipe_id,
                recipe_version=recipe_version,
                recipe=_dump(recipe),
                parameters=_dump(parameters or {}),
                owner_username=owner,
                status=str(RunStatus.STAGING),
                inputs=_dump(inputs),
                callback_url=callback_url,
                retry_of=retry_of,
                started_by=started_by,
                timeout=self._timeout,
            )
            staged = {side: source for side, source in inputs.items() if to_stage(source)}
            if staged:
                await self._stage(tx, run_id, owner, staged)
            else:
                await self._match(tx, run_id, inputs)
        return await self.get(run_id)

    async def get(self, run_id: int) -> Run:
        row = await self._db.row(SQL.run_get, run_id=_checked_id(run_id))
        if row is None:
            raise _missing(run_id)
        return _run(row)

    async def page(
        self, *, offset: int, limit: int, recipe_id: str | None = None, owner: str | None = None
    ) -> tuple[list[Run], int]:
        filters = {"recipe_id": recipe_id, "owner_username": owner}
        rows = await self._db.fetch(SQL.run_list, offset=offset, limit=limit, **filters)
        return [_run(row) for row in rows], await self._db.value(SQL.run_count, **filters)

    async def progress(self, run: Run) -> Progress:
        return progress_of(
            run, await self._db.fetch(SQL.run_jobs, group_ids=run.groups), self._clock.now()
        )

    def heard(self) -> int:
        """Take before reading a run, and pass to `changed` after it."""
        return self._jobs.notifier.heard(CHANNELS)

    async def changed(self, timeout: float, *, heard: int) -> None:
        """Wait until some run changed since `heard`, or the timeout; progress within a step does
        not notify."""
        await self._waiters.wait(CHANNELS, timeout, heard=heard)

    async def cancel(self, run_id: int, *, actor: str, reason: str = "") -> Run:
        """End the run and all of its jobs. A cancelled run stays cancelled; any other terminal
        status raises InvalidState."""
        run = await self.get(run_id)
        async with self._db.transaction() as tx:
            live = await tx.fetch(SQL.run_live, group_ids=run.groups)
            row = await tx.row(SQL.run_lock, run_id=run_id)
            status = RunStatus(row["status"]) if row is not None else RunStatus.CANCELLED
            if status.over and status is not RunStatus.CANCELLED:
                raise InvalidState(f"Run {run_id} has already ended: {status}.", status=str(status))
            if not status.over:
                error = {"code": "CANCELLED", "message": reason or f"Cancelled by {actor}."}
                await self._end(tx, run_id, RunStatus.CANCELLED, error=error)
                await self._jobs.audit(tx, actor, "run.cancel", f"run:{run_id}", {"reason": reason})
            for job in live:
                if await tx.fetch(SQL.run_live_one, job_id=job["job_id"]):
                    await self._jobs.cancel(job["job_id"], actor=actor, reason=reason, tx=tx)
        return await self.get(run_id)

    async def retry(self, run_id: int) -> Run:
        """Start the same run again as a new one of the same owner, on the current data of the
        sources."""
        run = await self.get(run_id)
        if run.status not in (RunStatus.FAILED, RunStatus.CANCELLED):
            raise InvalidState(
                f"Run {run_id} is {run.status}; only failed or cancelled runs can be retried."
            )
        return await self.add(
            owner=run.owner_username,
            recipe=run.recipe,
            inputs={side: as_requested(source) for side, source in run.inputs.items()},
            recipe_id=run.recipe_id,
            recipe_version=run.recipe_version,
            parameters=run.parameters,
            callback_url=run.callback_url,
            retry_of=run_id,
        )

    async def _check_active(self, tx: Tx, owner: str) -> None:
        await tx.fetch(SQL.run_active_turn, owner=owner)
        active: int = await tx.value(SQL.run_active, owner=owner)
        if active >= self._most_active:
            raise ConcurrencyLimit(
                f"{owner} has {active} active runs; the limit is {self._most_active}.",
                hint="Wait until some of them end, or cancel them.",
                limit_type="active_runs_per_user",
                current_count=active,
                max_allowed=self._most_active,
            )

    # gates

    async def staged(self, tx: Tx, fired: Fired) -> None:
        """Gate of staging: all plans and chunks are over."""
        run_id = fired.payload["run_id"]
        row = await tx.row(SQL.run_lock, run_id=run_id)
        if row is None or row["status"] != RunStatus.STAGING:
            return
        jobs = await tx.fetch(SQL.run_jobs, group_ids=[fired.group_id])
        if not fired.succeeded:
            await self._end(tx, run_id, RunStatus.FAILED, error=cause(jobs, fired.error))
            return
        try:
            inputs: dict[str, SideInput] = orjson.loads(row["inputs"])
            for side, source in inputs.items():
                if to_stage(source):
                    inputs[side] = cast("SideInput", source | parts_of(jobs, side))
            await self._match(tx, run_id, inputs)
        except PenstockError as e:
            await self._end(
                tx, run_id, RunStatus.FAILED, error={"code": e.code, "message": e.message}
            )

    async def matched(self, tx: Tx, fired: Fired) -> None:
        """Gate of the match job, called when it succeeded or failed."""
        run_id = fired.payload["run_id"]
        [job] = await tx.fetch(SQL.run_jobs, group_ids=[fired.group_id])
        if job["status"] != Status.SUCCEEDED:
            await self._end(tx, run_id, RunStatus.FAILED, error=cause([job], fired.error))
            return
        result = orjson.loads(job["result"])
        passed = result.get("threshold")
        status = RunStatus.COMPLETED if passed is None else RunStatus.FAILED
        await self._end(tx, run_id, status, result=result, error=passed)

    async def _stage(
        self, tx: Tx, run_id: int, owner: str, staged: Mapping[str, SideInput]
    ) -> None:
        specs = [
            JobSpec(
                kind=STAGE_PLAN,
                payload=StagePlanPayload(
                    run_id=run_id,
                    side=side,
                    data_source_id=source["data_source_id"],
                    side_document=source["document"],
                    staging=source.get("staging", {}),
                ).payload(),
                created_by=owner,
                trace=f"run-{run_id}",
            )
            for side, source in sorted(staged.items())
        ]
        group = GroupSpec(
            name=f"stage:{run_id}",
            gate=STAGED,
            payload={"run_id": run_id},
            deadline_in=self._timeout,
        )
        group_id, added = await self._jobs.open_group(group, specs, tx=tx)
        if self._share is not None:
            await self._share.spread(tx, STAGE_QUEUE, owner, [job.job_id for job in added])
        await tx.changed(SQL.run_staging, run_id=run_id, group_id=group_id)

    async def _match(self, tx: Tx, run_id: int, inputs: Mapping[str, SideInput]) -> None:
        row = await tx.row(SQL.run_lock, run_id=run_id)
        if row is None:
            raise _missing(run_id)
        left = timedelta(seconds=max(1.0, row["seconds_left"]))
        decided, before = await _history(tx, run_id, row["recipe_id"])
        order = MatchPayload(
            run_id=run_id,
            recipe=orjson.loads(row["recipe"]),
            recipe_version=row["recipe_version"],
            inputs=inputs,
            parameters=orjson.loads(row["parameters"]),
            decided=decided,
            before=before,
        )
        spec = JobSpec(
            kind=MATCH,
            payload=order.payload(),
            deadline_in=left,
            created_by=row["owner_username"],
            trace=f"run-{run_id}",
        )
        group = GroupSpec(
            name=f"match:{run_id}", gate=MATCHED, payload={"run_id": run_id}, deadline_in=left
        )
        group_id, [added] = await self._jobs.open_group(group, [spec], tx=tx, force=True)
        if self._share is not None:
            await self._share.spread(tx, MATCH_QUEUE, row["owner_username"], [added.job_id])
        await tx.changed(
            SQL.run_ready,
            run_id=run_id,
            inputs=_dump(inputs),
            match_group=group_id,
            match_job=added.job_id,
        )
        tx.after_commit(self._notify)

    async def _end(
        self,
        tx: Tx,
        run_id: int,
        status: RunStatus,
        *,
        result: RunResult | None = None,
        error: Mapping[str, JsonValue] | None = None,
    ) -> None:
        """End the run once; also enqueues the cleanup of staged files and the callback."""
        row = await tx.row(SQL.run_lock, run_id=run_id)
        changed = await tx.changed(
            SQL.run_end,
            run_id=run_id,
            status=str(status),
            result=None if result is None else _dump(result),
            error=None if error is None else _dump(error),
        )
        if not changed or row is None:
            return
        after = [JobSpec(kind=CLEAN, payload={"run_id": run_id}, unique_key=f"{CLEAN}:{run_id}")]
        if row["callback_url"] is not None:
            after.append(
                JobSpec(
                    kind=CALLBACK, payload={"run_id": run_id}, unique_key=f"{CALLBACK}:{run_id}"
                )
            )
        if row["staging_group"] is None:
            after = after[1:]
        await self._enqueue_after(tx, after)
        tx.after_commit(lambda: log.info("run_ended", run_id=run_id, status=str(status)))
        tx.after_commit(self._notify)

    def _notify(self) -> None:
        for name in CHANNELS:
            self._jobs.notifier.ring(name, 0)

    async def _enqueue_after(self, tx: Tx, specs: Sequence[JobSpec]) -> None:
        registered = [spec for spec in specs if spec.kind in self._jobs.kinds]
        if registered:
            await self._jobs.open_group(GroupSpec(name="run:after"), registered, tx=tx, force=True)


async def _history(
    tx: Tx, run_id: int, recipe_id: str | None
) -> tuple[dict[str, list[tuple[Key, Key]]], list[str]]:
    """What the runs of a saved recipe start from: decisions, and open items of the previous run."""
    if recipe_id is None:
        return {}, []
    pairs: dict[str, list[tuple[Key, Key]]] = {"match": [], "unmatch": []}
    for row in await tx.fetch(SQL.decision_list, recipe_id=recipe_id):
        pairs[row["kind"]].append((orjson.loads(row["left_key"]), orjson.loads(row["right_key"])))
    previous = await tx.row(SQL.run_previous, recipe_id=recipe_id, run_id=run_id)
    before = [] if previous is None else orjson.loads(previous["result"]).get("open_items", [])
    return pairs, before


def _dump(value: Mapping[str, object]) -> str:
    return orjson.dumps(dict(value), default=str).decode()


def _checked_id(run_id: int) -> int:
    if not 0 < run_id <= MAX_ID:
        raise _missing(run_id)
    return run_id


def _missing(run_id: int) -> NotFound:
    return NotFound(f"There is no run {run_id}.")


def _run(row: asyncpg.Record) -> Run:
    documents = {name: None if row[name] is None else orjson.loads(row[name]) for name in _JSON}
    return Run(**(dict(row) | documents | {"status": RunStatus(row["status"])}))
