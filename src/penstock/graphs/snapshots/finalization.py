"""Finalizes a snapshot, in the transaction that ends its last job.

`settle` reads the outcomes of a snapshot's jobs and takes the next step: a failed job fails the
snapshot; when all exports are done, a publish job is added, which checks the parts and writes the
manifest; when that is done, the snapshot is ready. It is the gate handler of both groups, and the
export resync calls it for stuck snapshots. It is idempotent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from penstock.graphs.snapshots.export_job import message, whole
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.graphs.snapshots.payloads import PUBLISH, Entity
from penstock.graphs.snapshots.repository import SQL
from penstock.jobs.model import GroupSpec, JobSpec, Json, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import asyncpg

    from penstock.graphs.snapshots.model import Snapshot
    from penstock.graphs.snapshots.repository import Snapshots
    from penstock.jobs.gates import Fired
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Tx

GATE = "snapshot"
PUBLISH_STEP = "publish"
COUNTED = frozenset({"size_bytes", "node_counts", "edge_counts"})
MAX_MESSAGE = 4000


class SnapshotFinalizer:
    def __init__(self, jobs: PgJobStore, snapshots: Snapshots) -> None:
        self._jobs = jobs
        self._snapshots = snapshots

    async def __call__(self, tx: Tx, fired: Fired) -> None:
        await self.settle(tx, fired.payload["snapshot_id"])

    async def settle(self, tx: Tx, snapshot_id: int) -> bool:
        """Take the next step, if the jobs' outcomes allow one; False if there was none."""
        snapshot = await self._snapshots.lock(tx, snapshot_id)
        ends = await tx.fetch(SQL.export_ends, snapshot_id=snapshot_id)
        if (
            snapshot.status is not SnapshotStatus.CREATING
            or not ends
            or any(_is_live(end) for end in ends)
        ):
            return False
        if failed := _failure(ends):
            await self._fail(tx, snapshot, ends, *failed)
        elif snapshot.publish_job is None:
            await self._publish(tx, snapshot, ends)
        else:
            return await self._conclude(tx, snapshot, ends)
        return True

    async def _conclude(self, tx: Tx, snapshot: Snapshot, ends: Sequence[asyncpg.Record]) -> bool:
        end = await tx.row(SQL.job_end, job_id=snapshot.publish_job)
        if end is None:
            return False
        if end["status"] != Status.SUCCEEDED:
            await self._fail(tx, snapshot, ends, PUBLISH_STEP, message(_loaded(end["error"])) or "")
            return True
        counted = _loaded(end["result"])
        if not isinstance(counted, dict) or not counted.keys() >= COUNTED:
            await self._fail(
                tx, snapshot, ends, PUBLISH_STEP, "The publish job ended without its counts."
            )
            return True
        await self._snapshots.move(
            tx,
            snapshot,
            SnapshotStatus.READY,
            **{name: counted[name] for name in COUNTED},
        )
        return True

    async def _publish(self, tx: Tx, snapshot: Snapshot, ends: Sequence[asyncpg.Record]) -> None:
        """Every attempt writes the same manifest bytes: its time is the end of the last export."""
        payload = {
            "snapshot_id": snapshot.snapshot_id,
            "prefix": snapshot.prefix,
            "jobs": [end["job_id"] for end in ends],
            "created_at": max(end["finished_at"] for end in ends).isoformat(),
        }
        group = GroupSpec(
            name=f"publish:{snapshot.snapshot_id}",
            gate=GATE,
            payload={"snapshot_id": snapshot.snapshot_id},
            deadline_in=None,
        )
        spec = JobSpec(kind=PUBLISH, payload=payload, created_by=snapshot.owner_username)
        _, [added] = await self._jobs.open_group(group, [spec], tx=tx, force=True)
        await tx.changed(
            SQL.snapshot_publish, snapshot_id=snapshot.snapshot_id, publish_job=added.job_id
        )

    async def _fail(
        self,
        tx: Tx,
        snapshot: Snapshot,
        ends: Iterable[asyncpg.Record],
        step: str,
        error_message: str,
    ) -> None:
        counts = partial_counts(ends)
        await self._snapshots.move(
            tx,
            snapshot,
            SnapshotStatus.FAILED,
            node_counts=counts["node"],
            edge_counts=counts["edge"],
            failed_step=step,
            error_message=error_message[:MAX_MESSAGE],
        )


def partial_counts(ends: Iterable[asyncpg.Record]) -> dict[str, dict[str, int]]:
    """Rows by entity, of the completed exports."""
    counts: dict[str, dict[str, int]] = {"node": {}, "edge": {}}
    for end in ends:
        if end["status"] == Status.SUCCEEDED and (rows := _rows(end)) is not None:
            by_name = counts[end["job_type"]]
            by_name[end["entity_name"]] = by_name.get(end["entity_name"], 0) + rows
    return counts


def _is_live(end: asyncpg.Record) -> bool:
    return end["status"] is not None and not Status(end["status"]).over


def _failure(ends: Sequence[asyncpg.Record]) -> tuple[str, str] | None:
    """The entity that failed, and why; jobs cancelled because of another's failure come last."""
    bad = [end for end in ends if end["status"] != Status.SUCCEEDED or _rows(end) is None]
    if not bad:
        return None
    end = next((e for e in bad if e["status"] != Status.CANCELLED), bad[0])
    text = message(_loaded(end["error"])) or "The export ended without a row count."
    return end["entity_name"], text if text.startswith(
        str(_entity(end))
    ) else f"{_entity(end)}: {text}"


def _entity(end: asyncpg.Record) -> Entity:
    return Entity(
        job_type=end["job_type"],
        name=end["entity_name"],
        from_node=end["from_node"],
        to_node=end["to_node"],
    )


def _rows(end: asyncpg.Record) -> int | None:
    return whole(_loaded(end["row_count"]))


def _loaded(text: str | None) -> Json:
    return None if text is None else orjson.loads(text)
