"""Background loops of a deployment: one process at a time, the next one when that one dies, in the
right order."""

from __future__ import annotations

import asyncio
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from penstock.graphs.snapshots.metrics import LifecycleMetrics
from penstock.graphs.snapshots.storage_cleanup import Cleaned, StorageCleanup
from penstock.kit.db import Db
from penstock.kit.errors import DependencyExists
from penstock.kit.loop import LoopMetrics
from penstock.operations.deletion import DeletionHooks
from penstock.operations.lifecycle import Ended, Lifecycle
from penstock.operations.loop_status import LoopStatusStore
from penstock.wiring.control_plane import build_control_plane
from tests.graphs.deployment import Deployment, connected, settings, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import asyncpg

    from penstock.api.services import Loops

LOOPS = {
    "reconcile",
    "lifecycle",
    "export_reconciliation",
    "schema_cache",
    "storage_cleanup",
    "resource_monitor",
}
METRICS = (
    "background_job_execution_total",
    "background_job_execution_duration_seconds",
    "reconciliation_passes_total",
    "reconciliation_pass_duration_seconds",
    "orphaned_pods_detected_total",
    "missing_pods_detected_total",
    "status_drift_detected_total",
    "lifecycle_passes_total",
    "lifecycle_pass_duration_seconds",
    "ttl_instances_terminated_total",
    "ttl_snapshots_deleted_total",
    "ttl_mappings_deleted_total",
    'graph_olap_database_connections{state="active"}',
    'graph_olap_database_connections{state="idle"}',
    "graph_olap_export_queue_depth",
    "stale_export_claims_reset_total",
)
HOLDER = """
import asyncio, sys
from prometheus_client import CollectorRegistry
from penstock.kit.db import Db
from penstock.kit.loop import Loop, LoopMetrics

async def main():
    async with Db(sys.argv[1], size=1) as db:
        loop = Loop(db, every=3600, metrics=LoopMetrics(CollectorRegistry()))
        loop.name = sys.argv[2]
        async with loop._turn() as mine:
            print("mine" if mine else "not mine", flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def planes(database: str, tmp_path: Path) -> AsyncIterator[tuple[Loops, Loops]]:
    """The loops of two control planes on one database, after their first passes."""
    async with (
        build_control_plane(settings(tmp_path / "one"), database) as one,
        build_control_plane(settings(tmp_path / "other"), database) as other,
    ):
        for plane in (one, other):
            for loop in plane.loops:
                await until(partial(_over, loop), within=30)
                await loop.stop()
        yield one.loops, other.loops


async def _over(loop: Any) -> bool:
    return (
        loop.last_status is not None
        or loop._metrics.runs.labels(loop.name, "skipped")._value.get() > 0
    )


async def test_of_two_control_planes_one_runs_each_loop(planes: tuple[Loops, Loops]) -> None:
    ones, others = planes
    assert {loop.name for loop in ones} >= LOOPS
    for one, other in zip(ones, others, strict=True):
        if one.name not in LOOPS:
            continue
        async with one._turn() as mine:
            assert mine, one.name
            assert await other.pass_() == "skipped", one.name
        assert await other.pass_() == "success", one.name


async def test_when_the_process_that_runs_a_loop_is_killed_another_one_takes_over(
    planes: tuple[Loops, Loops], database: str
) -> None:
    [mine] = [loop for loop in planes[0] if loop.name == "storage_cleanup"]
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, database, mine.name, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert await asyncio.wait_for(holder.stdout.readline(), 20) == b"mine\n"
        assert await mine.pass_() == "skipped"
    finally:
        holder.send_signal(signal.SIGKILL)
        await holder.wait()

    async def taken_over() -> bool:
        return await mine.pass_() == "success"

    await until(taken_over, within=10)


async def test_a_pass_of_one_control_plane_counts_for_all(
    planes: tuple[Loops, Loops], database: str
) -> None:
    [one], [other] = ([loop for loop in loops if loop.name == "lifecycle"] for loops in planes)
    assert await one.pass_() == "success"
    assert await other.pass_(if_due=True) == "skipped"
    async with connected(database) as connection:
        await connection.execute(
            "UPDATE penstock.background_loop SET next_run = now() WHERE name = 'lifecycle'"
        )
        assert await other.pass_(if_due=True) == "success"
        assert await one.pass_(if_due=True) == "skipped"
    async with Db(database, size=1) as db:
        await LoopStatusStore(db).ask("lifecycle", actor="oz", reason="r")
    assert await one.pass_(if_due=True) == "success"


async def test_every_metric_has_its_name(deployment: Deployment) -> None:
    await until(partial(_over, deployment.services.loops[0]), within=30)
    text = generate_latest(deployment.services.registry).decode()
    for name in METRICS:
        assert f"\n{name}" in text, name


# lifecycle


class Room:
    """Rows whose lives a test decides, and ends that it can refuse."""

    def __init__(self, db: Db, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self.registry = CollectorRegistry()
        self.ended: list[tuple[str, int]] = []
        self.refused: set[int] = set()
        self.broken: set[int] = set()
        self._sql = connection
        self.loop = Lifecycle(
            db,
            DeletionHooks(
                instance=self._never,
                old_instance=self._stopping,
                idle_instance=self._asleep,
                snapshot=self._snapshot,
                mapping=self._mapping,
            ),
            every=300,
            metrics=LoopMetrics(self.registry),
            counts=LifecycleMetrics(self.registry),
        )

    async def _never(self, number: int, actor: str) -> None:
        raise AssertionError((number, actor))

    async def _stopping(self, number: int, actor: str) -> None:
        self._check("old", number, actor)
        await self._sql.execute(
            "UPDATE penstock.instance SET status = 'stopping' WHERE instance_id = $1", number
        )

    async def _asleep(self, number: int, actor: str) -> None:
        self._check("idle", number, actor)
        await self._sql.execute(
            "UPDATE penstock.instance SET status = 'suspended' WHERE instance_id = $1", number
        )

    async def _snapshot(self, number: int, actor: str) -> None:
        self._check("snapshot", number, actor)
        await self._sql.execute("DELETE FROM penstock.snapshot WHERE snapshot_id = $1", number)

    async def _mapping(self, number: int, actor: str) -> None:
        self._check("mapping", number, actor)
        await self._sql.execute("DELETE FROM penstock.mapping WHERE mapping_id = $1", number)

    def _check(self, what: str, number: int, actor: str) -> None:
        assert actor == "lifecycle"
        if number in self.refused:
            raise DependencyExists("Needed.")
        if number in self.broken:
            raise RuntimeError("boom")
        self.ended.append((what, number))

    async def mapping(self, **values: Any) -> int:
        number = await self._row("mapping", **values)
        await self._sql.execute(
            "INSERT INTO penstock.mapping_version (mapping_id, version, node_definitions,"
            " edge_definitions, node_count, edge_type_count, created_by)"
            " VALUES ($1, 1, '[]', '[]', 0, 0, 'ann')",
            number,
        )
        return number

    async def snapshot(
        self, mapping_id: int | None = None, *, status: str = "ready", **values: Any
    ) -> int:
        of: dict[str, Any] = (
            {} if mapping_id is None else {"mapping_id": mapping_id, "mapping_version": 1}
        )
        return await self._row("snapshot", status=status, **of, **values)

    async def instance(
        self, snapshot_id: int | None = None, *, status: str = "running", **values: Any
    ) -> int:
        fields: dict[str, Any] = {
            "wrapper_type": "ladybug",
            "place": "nowhere",
            "cpu_cores": 1,
            "memory_gb": 2,
            "status": status,
        }
        slug = await self._sql.fetchval("SELECT gen_random_uuid()::text")
        return await self._row(
            "instance", **fields, snapshot_id=snapshot_id, url_slug=slug, **values
        )

    async def _row(
        self,
        table: str,
        *,
        age: str = "0 s",
        expires: str | None = None,
        idle: str | None = None,
        **values: Any,
    ) -> int:
        """`age` is how long ago it was made and last used; `expires` and `idle` are spans from
        then."""
        fields = {"name": "n", "owner_username": "ann"} | values
        spans = {"created_at": f"now() - interval '{age}'"}
        if table != "instance":
            spans["last_used_at"] = spans["created_at"]
        else:
            spans["last_activity_at"] = spans["created_at"]
        if expires is not None:
            spans["expires_at"] = f"{spans['created_at']} + interval '{expires}'"
        if idle is not None:
            spans["inactivity_timeout"] = f"interval '{idle}'"
        columns = ", ".join([*fields, *spans])
        places = ", ".join([*(f"${n}" for n in range(1, len(fields) + 1)), *spans.values()])
        number: int = await self._sql.fetchval(
            f"INSERT INTO penstock.{table} ({columns}) VALUES ({places}) RETURNING {table}_id",
            *fields.values(),
        )
        return number


@pytest.fixture
async def room(database: str) -> AsyncIterator[Room]:
    async with Db(database, size=2) as db, connected(database) as connection:
        yield Room(db, connection)


async def test_one_pass_ends_instances_then_snapshots_then_mappings(room: Room) -> None:
    mapping = await room.mapping(age="2 h", expires="1 h")
    snapshot = await room.snapshot(mapping, age="2 h", expires="1 h")
    instance = await room.instance(snapshot, age="2 h", expires="1 h")
    assert await room.loop.run_once() == Ended(instances=1, snapshots=1, mappings=1)
    assert room.ended == [("old", instance), ("snapshot", snapshot), ("mapping", mapping)]
    assert await room.loop.run_once() == Ended()
    counted = room.registry.get_sample_value
    assert counted("lifecycle_passes_total") == 2
    assert counted("lifecycle_pass_duration_seconds_count") == 2
    for what in ("instances_terminated", "snapshots_deleted", "mappings_deleted"):
        assert counted(f"ttl_{what}_total") == 1


async def test_what_is_needed_stays_until_nothing_needs_it(room: Room) -> None:
    mapping = await room.mapping(age="2 h", expires="1 h")
    snapshot = await room.snapshot(mapping, age="2 h", expires="1 h")
    for status in ("waiting_for_snapshot", "starting", "running", "suspended", "resuming"):
        await room.instance(snapshot, status=status)
    assert await room.loop.run_once() == Ended()
    await room._sql.execute("UPDATE penstock.instance SET status = 'failed'")
    assert await room.loop.run_once() == Ended(snapshots=1, mappings=1)


async def test_the_last_moment_of_a_life_is_its_last(room: Room) -> None:
    await room.mapping(age="60 min", expires="61 min")
    await room.snapshot(age="60 min", expires="61 min")
    await room.instance(age="60 min", expires="61 min")
    assert await room.loop.run_once() == Ended()
    await room.mapping(age="60 min", expires="60 min")
    await room.snapshot(age="60 min", expires="60 min")
    await room.instance(age="60 min", expires="60 min")
    assert await room.loop.run_once() == Ended(instances=1, snapshots=1, mappings=1)


async def test_idle_ones_go_by_their_last_use_and_only_running_instances_are_idle(
    room: Room,
) -> None:
    for age in ("59 min", "61 min"):
        await room.mapping(age=age, idle="1 h")
        await room.snapshot(age=age, idle="1 h")
        await room.instance(age=age, idle="1 h")
    for status in ("starting", "waiting_for_snapshot", "suspended", "stopping", "failed"):
        await room.instance(age="2 h", idle="1 h", status=status)
    assert await room.loop.run_once() == Ended(instances=1, snapshots=1, mappings=1)
    assert room.ended[0][0] == "idle"


async def test_snapshots_under_way_are_left_to_end_by_themselves(room: Room) -> None:
    for status in ("pending", "creating"):
        await room.snapshot(age="2 h", expires="1 h", status=status)
    assert await room.loop.run_once() == Ended()


async def test_what_cannot_be_ended_keeps_no_other_one(room: Room) -> None:
    first, second, third = [await room.snapshot(age="2 h", expires="1 h") for _ in range(3)]
    room.refused, room.broken = {first}, {second}
    assert await room.loop.run_once() == Ended(snapshots=1, failed=1)
    assert room.ended == [("snapshot", third)]


# storage cleanup


async def first_pass(deployment: Deployment) -> None:
    """Until the control plane's own loop has made the pass that it makes at its start."""
    [loop] = [loop for loop in deployment.services.loops if isinstance(loop, StorageCleanup)]

    async def is_over() -> bool:
        return loop.last_run is not None

    await until(is_over)


async def test_snapshots_that_failed_a_week_ago_lose_their_files_and_what_a_new_try_wrote_stays(
    deployment: Deployment, database: str
) -> None:
    await first_pass(deployment)
    created = [
        await deployment.graphs.snapshots.add(owner="me", name=str(days)) for days in (8, 6, 8)
    ]
    old, young, ready = created
    for snapshot in created:
        await deployment.store.create(f"{snapshot.prefix}nodes/A/part-1.parquet", b"bytes")
    loop = StorageCleanup(
        Db(database, size=2),
        deployment.services.store,
        deployment.graphs.snapshots,
        every=3600,
        metrics=LoopMetrics(CollectorRegistry()),
    )
    async with loop._db, connected(database) as connection:
        for snapshot, days, status in (
            (old, 8, "failed"),
            (young, 6, "failed"),
            (ready, 8, "ready"),
        ):
            await connection.execute(
                "UPDATE penstock.snapshot"
                " SET status = $2, updated_at = now() - $3 * interval '1 day'"
                " WHERE snapshot_id = $1",
                snapshot.snapshot_id,
                status,
                days,
            )
        assert await loop.run_once() == Cleaned(snapshots=1)
        assert await loop.run_once() == Cleaned()
        places = {
            row["snapshot_id"]: row["prefix"]
            for row in await connection.fetch("SELECT * FROM penstock.snapshot")
        }
        assert places == {
            old.snapshot_id: None,
            young.snapshot_id: young.prefix,
            ready.snapshot_id: ready.prefix,
        }
        payload = await connection.fetchval(
            "SELECT payload::text FROM penstock.job WHERE kind = 'erase'"
        )
        assert str(old.prefix) in payload
