"""The planner over days: what it reads, what it asks for, and what it leaves alone."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pyarrow as pa
import pytest

from penstock.jobs.control_plane import client_factory
from penstock.jobs.store import ENGINE_SETTINGS
from penstock.kit.sqlfile import load
from penstock.maintenance.actions.model import parse
from penstock.maintenance.control_plane import MaintenanceControlPlane
from penstock.maintenance.handlers import Maintainer
from penstock.maintenance.payloads import MAINTENANCE
from penstock.maintenance.tables.assessment.tier import Tier
from penstock.worker import Handlers
from tests.graphs.deployment import running_deployment, settings, until
from tests.jobs.conformance import Clock
from tests.maintenance.counting_io import READS, CountingFileIO
from tests.maintenance.tables import SampleTable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.graphs.deployment import Deployment

PARTITIONS, FILES = 30, 4
TEXT_BYTES = 700_000
HALF_AN_HOUR = timedelta(minutes=30)


@dataclass
class Time:
    """A clock that is ahead of the system's."""

    ahead: timedelta = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class Scene:
    """A control plane with one table in its own catalog, and time that a test moves."""

    plane: Deployment
    database_clock: Clock
    time: Time = field(default_factory=Time)

    def __post_init__(self) -> None:
        assert self.plane.services.maintenance is not None
        self.kept = self.plane.services.maintenance
        self.table = SampleTable(self.kept.service.pool.get("lake"))

    @property
    def name(self) -> Any:
        return self.kept.service.name("lake", "shop", "orders")

    async def pass_by(self, span: timedelta) -> None:
        self.time.ahead += span
        await self.database_clock.advance(span.total_seconds())

    async def govern(self, **policy: Any) -> None:
        await self.kept.policies.replace([{"name": "all", "pattern": "*", **policy}], actor="me")

    async def planned(self) -> int:
        """How many jobs a pass asks for; they are over when it returns, if a worker is there."""
        return (await self.kept.planner.run_once()).submitted

    async def settled(self) -> None:
        async def is_it() -> bool:
            rows = await self.kept.service.store.last_jobs(self.name)
            return all(row["status"] is not None for row in rows)

        await until(is_it)

    async def jobs_over(self, span: timedelta, step: timedelta) -> list[timedelta]:
        """At which times after now jobs were asked for, with a pass at every step."""
        asked, begin = [], self.time.ahead
        while self.time.ahead - begin <= span:
            if await self.planned():
                asked.append(self.time.ahead - begin)
                await self.settled()
            await self.pass_by(step)
        return asked

    def working(self):
        handlers = Handlers(
            {MAINTENANCE: Maintainer(client_factory(self.plane.settings, MaintenanceControlPlane))}
        )
        return self.plane.working(handlers=handlers, queues=(MAINTENANCE,))

    def write(self, days: int = PARTITIONS) -> None:
        """One file more in each of so many partitions."""
        texts = [os.urandom(TEXT_BYTES // 2).hex() for _ in range(days)]
        rows = {
            "id": range(days),
            "day": [f"d{n:02}" for n in range(days)],
            "note": texts,
            "at": [None] * days,
        }
        table = self.table.table
        table.append(pa.table(rows, schema=table.schema().as_arrow()))


@pytest.fixture
async def scene(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    catalog = {
        "warehouse": (tmp_path / "warehouse").as_uri(),
        "py-io-impl": f"{CountingFileIO.__module__}.{CountingFileIO.__name__}",
    }
    connection = await asyncpg.connect(database)
    async with running_deployment(
        database, settings(tmp_path, catalogs={"lake": catalog})
    ) as plane:
        scene = Scene(plane, Clock(connection))
        monkeypatch.setattr(scene.kept.service, "_clock", scene.time)
        monkeypatch.setattr(scene.kept.planner, "_clock", scene.time)
        yield scene
    await connection.close()


@pytest.fixture
async def spread(scene: Scene) -> Scene:
    """Thirty partitions with four small files each: more than enough of them, and nowhere enough
    together."""

    def create() -> None:
        scene.table.create(files=0, partitioned=True)
        for _ in range(FILES):
            scene.write()

    await asyncio.to_thread(create)
    return scene


async def test_a_table_is_not_unwell_for_what_its_maintenance_would_leave_alone(
    spread: Scene,
) -> None:
    await spread.pass_by(HALF_AN_HOUR)
    facts, health = await spread.kept.service.look(spread.name, Tier.MANIFESTS)
    assert (facts.data_files, facts.small_files) == (PARTITIONS * FILES, PARTITIONS * FILES)
    assert facts.bytes is not None
    assert facts.bytes > 32 * 1024 * 1024, "a tiny table would be healthy in any case"
    assert (health.score, health.actions, health.gain.files) == (100, (), 0)
    [small_files] = [issue for issue in health.issues if issue.code == "small_files"]
    assert (small_files.points, small_files.severity, small_files.evidence["rewritten_files"]) == (
        0,
        "info",
        0,
    )
    assert "too few in any one partition" in small_files.message
    [outcome] = await spread.kept.service.plan(spread.name, parse(["rewrite_data_files"]))
    assert (outcome.status, outcome.skipped["too_few_files"]) == (
        "nothing_to_do",
        PARTITIONS * FILES,
    )


async def test_the_planner_asks_for_nothing_in_two_days_of_passes_over_such_a_table(
    spread: Scene,
) -> None:
    await spread.govern(health_below=80)
    async with spread.working():
        assert await spread.jobs_over(timedelta(days=2), timedelta(minutes=10)) == []


async def test_what_the_score_promises_is_what_the_plan_takes(spread: Scene) -> None:
    await asyncio.to_thread(spread.write, 5)
    await spread.pass_by(HALF_AN_HOUR)
    _facts, health = await spread.kept.service.look(spread.name, Tier.MANIFESTS)
    [outcome] = await spread.kept.service.plan(spread.name, parse(["rewrite_data_files"]))
    [issue] = [issue for issue in health.issues if issue.code == "small_files"]
    promised = (issue.evidence["rewritten_files"], issue.evidence["written_files"])
    assert promised == (outcome.rewritten_files, outcome.added_files) == (5 * (FILES + 1), 5)
    assert health.gain.files == 5 * FILES
    assert issue.points > 0


async def test_partitions_that_are_being_written_to_weigh_when_they_are_left_alone(
    spread: Scene,
) -> None:
    """And nobody reads a manifest to find that out: the table does not change, only its age
    does."""
    await asyncio.to_thread(spread.write)
    _, now = await spread.kept.service.look(spread.name, Tier.MANIFESTS)
    assert now.score == 100
    READS.clear()
    await spread.pass_by(timedelta(minutes=6))
    _, later = await spread.kept.service.look(spread.name, Tier.MANIFESTS)
    assert later.score < 80
    assert READS["avro"] == 0


async def test_a_policy_is_judged_by_its_own_actions(spread: Scene) -> None:
    await spread.pass_by(HALF_AN_HOUR)
    await spread.govern(
        health_below=80,
        actions=["expire_snapshots", {"name": "rewrite_data_files", "min_input_files": 4}],
    )
    _, health = await spread.kept.service.look(spread.name, Tier.MANIFESTS)
    assert health.score < 80
    await spread.govern(
        health_below=80, actions=[{"name": "rewrite_data_files", "min_input_files": 4}]
    )
    assert await spread.planned() == 1
    await spread.plane.services.store.cancel(
        (await spread.kept.service.store.last_jobs(spread.name))[0]["job_id"], actor="me"
    )
    await spread.pass_by(timedelta(hours=2))
    await spread.govern(health_below=80, actions=["expire_snapshots"])
    assert await spread.planned() == 0, "expiring snapshots cures no small files"


async def test_jobs_that_find_nothing_to_do_back_off_until_the_table_changes(spread: Scene) -> None:
    await spread.govern(every_seconds=300, actions=["rewrite_data_files"])
    async with spread.working():
        asked = await spread.jobs_over(timedelta(hours=80), HALF_AN_HOUR)
        assert [at.total_seconds() / 3600 for at in asked] == [0, 1, 3, 7, 15, 31, 63]
        rows = await spread.kept.service.store.last_jobs(spread.name)
        assert all(row["idle"] for row in rows)
        await asyncio.to_thread(spread.write, 1)
        assert await spread.planned() == 1
        await spread.settled()
        assert await spread.planned() == 0


async def test_jobs_whose_budget_is_too_small_for_any_of_it_back_off_too(spread: Scene) -> None:
    tight = {"name": "rewrite_data_files", "hot_seconds": 0, "min_input_files": 4, "max_files": 1}
    await spread.govern(every_seconds=300, actions=[tight])
    async with spread.working():
        asked = await spread.jobs_over(timedelta(hours=8), HALF_AN_HOUR)
        assert [at.total_seconds() / 3600 for at in asked] == [0, 1, 3, 7]
    [result] = await spread.kept.service.store.actions(
        (await spread.kept.service.store.last_jobs(spread.name))[0]["job_id"]
    )
    assert (result["status"], result["result"]["commits"]) == ("partial", 0)


async def test_a_job_that_did_something_is_not_followed_by_a_pause(spread: Scene) -> None:
    hasty = {"name": "rewrite_data_files", "hot_seconds": 0, "min_input_files": 4}
    await spread.govern(every_seconds=300, actions=[hasty])
    async with spread.working():
        assert await spread.planned() == 1
        await spread.settled()
        [row] = await spread.kept.service.store.last_jobs(spread.name)
        assert (row["status"], row["idle"]) == (10, False)
        await spread.pass_by(timedelta(minutes=6))
        assert await spread.planned() == 1
        await spread.settled()


async def test_manifests_are_read_once_for_each_snapshot(scene: Scene) -> None:
    await asyncio.to_thread(scene.table.create)
    await scene.govern(health_below=80)
    reads = []
    for _ in range(4):
        READS.clear()
        await scene.planned()
        reads.append((READS["avro"] > 0, READS["json"] > 0))
        await scene.pass_by(HALF_AN_HOUR)
    assert reads == [(True, True), (False, True), (False, True), (False, True)]

    await scene.kept.service.look(scene.name, Tier.METADATA)
    READS.clear()
    await scene.planned()
    assert READS["avro"] == 0, "a look at the metadata alone has not made it forget the manifests"

    await asyncio.to_thread(scene.table.append, 100, 1)
    READS.clear()
    await scene.planned()
    assert READS["avro"] > 0
    seen = await scene.kept.service.store.seen(scene.name)
    assert seen is not None
    assert (seen.facts["data_files"], seen.facts["tier"]) == (7, "manifests")


async def test_manifests_are_read_again_when_they_are_judged_otherwise(scene: Scene) -> None:
    await asyncio.to_thread(scene.table.create)

    def change(**properties: str) -> None:
        with scene.table.table.transaction() as transaction:
            transaction.set_properties(properties)

    async def read() -> bool:
        READS.clear()
        await scene.kept.service.refresh()
        return READS["avro"] > 0

    assert [await read(), await read()] == [True, False]
    await asyncio.to_thread(change, **{"write.target-file-size-bytes": str(1024 * 1024)})
    assert [await read(), await read()] == [True, False]
    await asyncio.to_thread(change, **{"writer.lock-owner": "somebody"})
    assert [await read(), await read()] == [True, False]
    await scene.govern(actions=[{"name": "rewrite_data_files", "min_input_files": 2}])
    assert [await read(), await read()] == [True, False]
    READS.clear()
    await scene.kept.service.refresh(afresh=True)
    assert READS["avro"] > 0, "somebody asked for it"


async def test_age_is_judged_anew_at_each_pass_without_reading_a_manifest(scene: Scene) -> None:
    await asyncio.to_thread(scene.table.create)
    await scene.govern(health_below=99)
    assert await scene.planned() == 0
    READS.clear()
    await scene.pass_by(timedelta(days=11))
    assert await scene.planned() == 1, "snapshots can expire by now"
    seen = await scene.kept.service.store.seen(scene.name)
    assert seen is not None
    [history] = [issue for issue in seen.health["issues"] if issue["code"] == "history"]
    assert (history["evidence"]["expirable_snapshots"], history["points"]) == (3, 4.5)
    assert READS["avro"] == 0


async def test_the_longest_pause_is_two_days(spread: Scene) -> None:
    """So many jobs in vain are looked at that it can be reached."""
    await spread.govern(every_seconds=300, actions=["rewrite_data_files"])
    async with spread.working():
        await spread.jobs_over(timedelta(hours=64), timedelta(hours=1))
        asked = await spread.jobs_over(timedelta(days=6), timedelta(hours=4))
    pauses = [(b - a).total_seconds() / 3600 for a, b in itertools.pairwise(asked)]
    assert set(pauses) == {48}


_FILL = """
INSERT INTO penstock.maintenance_job (job_id, catalog, db, table_name, policy, snapshot_id)
  SELECT i, 'lake', 'shop', 'orders' || i % 50, 'all', 1 FROM generate_series(1, 20000) i;
INSERT INTO penstock.maintenance_action (job_id, attempt_id, action, status, result)
  SELECT i, gen_random_uuid(), 'rewrite_data_files', 'completed', '{}'
  FROM generate_series(1, 20000) i;
INSERT INTO penstock.outcome (job_id, attempt_no, status)
  SELECT i, 1, 10 FROM generate_series(1, 20000) i;
"""


async def test_the_last_jobs_of_a_table_are_found_by_index(database: str) -> None:
    """The planner asks for each table, at each pass, on a connection of the kernel's."""
    statement = load("penstock.maintenance.sql").job_last
    connection = await asyncpg.connect(database, server_settings=ENGINE_SETTINGS)
    try:
        await connection.execute(_FILL)
        await connection.execute("ANALYZE")
        await connection.execute(f"PREPARE guarded AS {statement.text}")
        nulls = ", ".join(["NULL"] * len(statement.parameters))
        plan = json.loads(
            await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE guarded({nulls})")
        )[0]["Plan"]
    finally:
        await connection.close()
    nodes = list(_walk(plan))
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]
    used = {node["Index Name"] for node in nodes if "Index Name" in node}
    assert used >= {"maintenance_job_table", "maintenance_action_pkey"}


def _walk(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _walk(child)


async def test_a_table_that_becomes_unreadable_during_a_pass_does_not_end_the_pass(
    scene: Scene,
) -> None:
    await asyncio.to_thread(scene.table.create, files=2)
    await scene.govern(commits=1)
    await scene.kept.service.refresh(tier=Tier.MANIFESTS)
    [seen], _ = await scene.kept.service.store.tables()
    policies = await scene.kept.policies.all()
    assert (await scene.kept.planner.judge(seen, policies)).due is not None
    location = (await asyncio.to_thread(lambda: scene.table.table.metadata_location)).removeprefix(
        "file://"
    )
    await asyncio.to_thread(os.unlink, location)
    assert (await scene.kept.planner.judge(seen, policies)).skipped == "not readable"
