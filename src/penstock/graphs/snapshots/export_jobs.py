"""Export jobs of a snapshot: one kernel job per entity, in one group whose gate finalizes it.

Operations that end several jobs lock in the global order: live rows, then groups, then the
snapshot. Adding jobs locks only the snapshot, since nobody can wait for rows that do not exist yet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import orjson

from penstock.graphs.errors import InvalidStateTransition, JobsAlreadyExist
from penstock.graphs.snapshots.export_job import ExportJob, export_job
from penstock.graphs.snapshots.finalization import GATE, SnapshotFinalizer
from penstock.graphs.snapshots.model import SnapshotStatus, prefix_of
from penstock.graphs.snapshots.payloads import (
    KINDS,
    NO_CAPS,
    QUEUE,
    EntityExport,
    ExportCaps,
    ExportPayload,
    QueryState,
)
from penstock.graphs.snapshots.repository import MAX_ID, SQL
from penstock.jobs.model import GroupSpec, JobSpec, Status
from penstock.kit.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.graphs.snapshots.model import Snapshot
    from penstock.graphs.snapshots.repository import Snapshots
    from penstock.jobs.fair_share import FairShare
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db, Tx
    from penstock.sources.repository import DataSource, DataSources

MAX_JOBS = 1000
MAX_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportLimits:
    """Limits of one export, by the role of the snapshot's owner."""

    analyst: ExportCaps = NO_CAPS
    admin: ExportCaps = NO_CAPS

    def of(self, *, is_admin: bool) -> ExportCaps:
        return self.admin if is_admin else self.analyst


NO_LIMITS = ExportLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """An entity to export; `query` is set if its query was submitted before the job exists."""

    wanted: EntityExport
    query: QueryState | None = None


class Exports:
    def __init__(
        self,
        db: Db,
        jobs: PgJobStore,
        snapshots: Snapshots,
        sources: DataSources,
        *,
        max_duration: timedelta = timedelta(hours=1),
        caps: ExportLimits = NO_LIMITS,
        share: FairShare | None = None,
    ) -> None:
        self._db = db
        self._jobs = jobs
        self._snapshots = snapshots
        self._sources = sources
        self._max_duration = max_duration
        self._caps = caps
        self._share = share
        self.finalizer = SnapshotFinalizer(jobs, snapshots)

    async def start(
        self, snapshot_id: int, submissions: Sequence[Submission], *, tx: Tx | None = None
    ) -> list[ExportJob]:
        """Add one job per entity and set the snapshot to `creating`, in one transaction."""
        if not 1 <= len(submissions) <= MAX_JOBS:
            raise InvalidInput(
                f"A snapshot has 1 to {MAX_JOBS} export jobs, not {len(submissions)}."
            )
        sources = await self._sources_of([w.wanted for w in submissions])
        async with self._db.transaction(tx) as inner:
            snapshot = await self._snapshots.lock(inner, snapshot_id)
            if await inner.fetch(SQL.export_ids, snapshot_id=snapshot_id):
                raise JobsAlreadyExist(f"Snapshot {snapshot_id} already has export jobs.")
            if snapshot.status is not SnapshotStatus.CREATING:
                snapshot = await self._begin(inner, snapshot)
            caps = self._caps.of(
                is_admin=await inner.value(SQL.is_admin, username=snapshot.owner_username)
            )
            orders = [_payload(snapshot, w.wanted, sources, caps) for w in submissions]
            job_ids = await self._open(
                inner, snapshot, [self._spec(order, snapshot) for order in orders]
            )
            await _add_rows(inner, snapshot_id, [w.wanted for w in submissions], job_ids)
            await _begin_submitted(inner, submissions, job_ids)
            return await self._views(inner, job_ids)

    async def begin(self, snapshot_id: int) -> Snapshot:
        """Set the snapshot to `creating`, before its jobs are added."""
        async with self._db.transaction() as tx:
            return await self._begin(tx, await self._snapshots.lock(tx, snapshot_id))

    async def of_snapshot(self, snapshot_id: int) -> list[ExportJob]:
        async with self._db.transaction() as tx:
            await self._snapshots.get(snapshot_id, tx=tx)
            return await self._views(tx, await _job_ids(tx, snapshot_id))

    async def get(self, job_id: int) -> ExportJob:
        async with self._db.transaction() as tx:
            jobs = await self._views(tx, [job_id]) if 0 < job_id <= MAX_ID else []
        if not jobs:
            raise NotFound(f"There is no export job {job_id}.")
        return jobs[0]

    async def these(self, job_ids: Sequence[int]) -> list[ExportJob]:
        """The jobs that are exports, in the given order."""
        async with self._db.transaction() as tx:
            return await self._views(tx, job_ids)

    async def retry(self, snapshot_id: int) -> list[ExportJob]:
        """Repeat the exports that did not complete, or all of them if the files were deleted."""
        async with self._db.transaction() as tx:
            snapshot = await self._snapshots.lock(tx, snapshot_id)
            cleaned = snapshot.prefix is None
            await self._snapshots.move(tx, snapshot, SnapshotStatus.CREATING)
            if cleaned:
                await tx.changed(
                    SQL.snapshot_place, snapshot_id=snapshot_id, prefix=_prefix(snapshot)
                )
            ends = await tx.fetch(SQL.export_ends, snapshot_id=snapshot_id)
            again = [end["job_id"] for end in ends if cleaned or end["status"] != Status.SUCCEEDED]
            if again:
                await self._replace(tx, snapshot, again)
            else:
                await self.finalizer.settle(tx, snapshot_id)
            return await self._views(tx, await _job_ids(tx, snapshot_id))

    async def cancel(self, snapshot_id: int, *, actor: str, reason: str = "") -> Snapshot:
        """Cancel the snapshot and all of its jobs."""
        return await self._end(snapshot_id, SnapshotStatus.CANCELLED, actor=actor, reason=reason)

    async def fail(
        self, snapshot_id: int, *, actor: str, reason: str, step: str | None = None
    ) -> Snapshot:
        return await self._end(
            snapshot_id, SnapshotStatus.FAILED, actor=actor, reason=reason, step=step
        )

    async def live_attempts(self, queue: str) -> list[str]:
        """Attempts whose files may still become part of a result."""
        return [row["attempt"] for row in await self._db.fetch(SQL.export_attempts, queue=queue)]

    async def _begin(self, tx: Tx, snapshot: Snapshot) -> Snapshot:
        if snapshot.status is not SnapshotStatus.PENDING:
            raise InvalidStateTransition(
                f"Snapshot {snapshot.snapshot_id} is {snapshot.status};"
                " only a pending snapshot can be started.",
                hint="Use retry for a failed snapshot.",
            )
        return await self._snapshots.move(tx, snapshot, SnapshotStatus.CREATING)

    async def _end(
        self,
        snapshot_id: int,
        status: SnapshotStatus,
        *,
        actor: str,
        reason: str,
        step: str | None = None,
    ) -> Snapshot:
        for _ in range(MAX_TRIES):
            async with self._db.transaction() as tx:
                before = await self._snapshots.get(snapshot_id, tx=tx)
                live = await self._lock_live(tx, before)
                snapshot = await self._snapshots.lock(tx, snapshot_id)
                if snapshot.publish_job == before.publish_job:
                    failed = status is SnapshotStatus.FAILED
                    ended = await self._snapshots.move(
                        tx,
                        snapshot,
                        status,
                        error_message=reason or None,
                        failed_step=step if failed else None,
                    )
                    for job_id in live:
                        await self._cancel(tx, job_id, actor, reason)
                    return ended
        raise Conflict(f"Snapshot {snapshot_id} was modified concurrently.", hint="Try again.")

    async def _cancel(self, tx: Tx, job_id: int, actor: str, reason: str) -> None:
        """Skips ended jobs: cancelling one job cancels the waiting ones of its group."""
        if await tx.fetch(SQL.hold_live, job_ids=[job_id]):
            await self._jobs.cancel(job_id, actor=actor, reason=reason, tx=tx)

    async def _lock_live(self, tx: Tx, snapshot: Snapshot) -> list[int]:
        """Lock the live jobs of a snapshot and their groups."""
        job_ids = await _job_ids(tx, snapshot.snapshot_id)
        if snapshot.publish_job is not None:
            job_ids.append(snapshot.publish_job)
        live = await tx.fetch(SQL.hold_live, job_ids=job_ids)
        group_ids = {row["group_id"] for row in live if row["group_id"] is not None}
        await tx.fetch(SQL.hold_groups, group_ids=sorted(group_ids))
        return [row["job_id"] for row in live]

    async def _replace(self, tx: Tx, snapshot: Snapshot, old_ids: Sequence[int]) -> None:
        rows = {
            row["job_id"]: row for row in await tx.fetch(SQL.job_payloads, job_ids=list(old_ids))
        }
        if len(rows) < len(old_ids):
            raise InvalidStateTransition(
                f"Snapshot {snapshot.snapshot_id} is too old to be retried:"
                " its jobs were deleted by retention.",
                hint="Create a new snapshot.",
            )
        orders = [ExportPayload.read(orjson.loads(rows[job_id]["payload"])) for job_id in old_ids]
        new_ids = await self._open(tx, snapshot, [self._spec(order, snapshot) for order in orders])
        await tx.changed(
            SQL.export_replace,
            snapshot_id=snapshot.snapshot_id,
            old_ids=list(old_ids),
            new_ids=new_ids,
        )

    async def _open(self, tx: Tx, snapshot: Snapshot, specs: Sequence[JobSpec]) -> list[int]:
        group = GroupSpec(
            name=f"exports:{snapshot.snapshot_id}",
            gate=GATE,
            payload={"snapshot_id": snapshot.snapshot_id},
            deadline_in=None,
        )
        _, added = await self._jobs.open_group(group, specs, tx=tx)
        job_ids = [job.job_id for job in added]
        if self._share is not None:
            await self._share.spread(tx, QUEUE, snapshot.owner_username, job_ids)
        return job_ids

    def _spec(self, order: ExportPayload, snapshot: Snapshot) -> JobSpec:
        return JobSpec(
            kind=order.wanted.mode.kind,
            payload=order.payload(),
            timeout=self._max_duration,
            created_by=snapshot.owner_username,
            trace=f"snapshot-{snapshot.snapshot_id}",
        )

    async def _sources_of(self, exports: Sequence[EntityExport]) -> Mapping[int | None, DataSource]:
        sources: dict[int | None, DataSource] = {}
        for data_source_id in {w.data_source_id for w in exports}:
            source = (
                await self._sources.default()
                if data_source_id is None
                else await self._sources.get(data_source_id)
            )
            if source is None:
                raise InvalidInput("No data source was named, and there is no default data source.")
            sources[data_source_id] = source
        return sources

    async def _views(self, tx: Tx, job_ids: Sequence[int]) -> list[ExportJob]:
        rows = await tx.fetch(SQL.export_view, job_ids=list(job_ids), kinds=list(KINDS))
        jobs = {row["job_id"]: export_job(row) for row in rows}
        return [jobs[job_id] for job_id in job_ids if job_id in jobs]


def _prefix(snapshot: Snapshot) -> str:
    return prefix_of(
        snapshot.owner_username, snapshot.mapping_id, snapshot.mapping_version, snapshot.snapshot_id
    )


def _payload(
    snapshot: Snapshot,
    export: EntityExport,
    sources: Mapping[int | None, DataSource],
    caps: ExportCaps,
) -> ExportPayload:
    source = sources[export.data_source_id]
    return ExportPayload(
        snapshot_id=snapshot.snapshot_id,
        prefix=f"{_prefix(snapshot)}{export.entity.path}/",
        data_source_id=source.data_source_id,
        source_type=source.type,
        wanted=replace(export, data_source_id=source.data_source_id),
        caps=caps,
    )


async def _job_ids(tx: Tx, snapshot_id: int) -> list[int]:
    return [row["job_id"] for row in await tx.fetch(SQL.export_ids, snapshot_id=snapshot_id)]


async def _add_rows(
    tx: Tx, snapshot_id: int, exports: Sequence[EntityExport], job_ids: Sequence[int]
) -> None:
    entities = [w.entity for w in exports]
    if len(set(entities)) < len(entities):
        twice = next(e for e in entities if entities.count(e) > 1)
        raise InvalidInput(
            f"{twice} is listed twice; an entity has one export job.", entity=str(twice)
        )
    await tx.changed(
        SQL.export_add,
        snapshot_id=snapshot_id,
        positions=list(range(len(entities))),
        job_types=[e.job_type for e in entities],
        entity_names=[e.name for e in entities],
        from_nodes=[e.from_node for e in entities],
        to_nodes=[e.to_node for e in entities],
        job_ids=list(job_ids),
    )


async def _begin_submitted(
    tx: Tx, submissions: Sequence[Submission], job_ids: Sequence[int]
) -> None:
    begun = {
        job_id: w.query
        for w, job_id in zip(submissions, job_ids, strict=True)
        if w.query is not None
    }
    if begun:
        states = [orjson.dumps(query.state()).decode() for query in begun.values()]
        await tx.changed(SQL.export_submitted, job_ids=list(begun), states=states)
