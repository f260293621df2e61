"""A control plane with one table, and the real Spark that maintains it."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from penstock.jobs.model import Status
from penstock.maintenance.actions.model import parse
from penstock.maintenance.engines.contract import Failed
from penstock.maintenance.engines.registry import open_engine
from penstock.maintenance.payloads import Order
from penstock.maintenance.remote_handlers import RemoteState
from tests.graphs.deployment import connected, running_deployment, settings, until
from tests.maintenance.test_lifecycle import Scene

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.maintenance.engines.contract import RemoteQuery
    from tests.servers.spark import Gate, Spark

COMPACT = {"name": "rewrite_data_files", "min_input_files": 2}
SPARK_PATIENCE = 240.0
COMMIT = (r"POST", r"/tables/orders$")
"""By way of the door: what a rewrite ends with."""


class SparkScene(Scene):
    spark: Spark
    dsn: str

    @property
    def store(self) -> Any:
        return self.plane.services.store

    async def ask(self, engine: str, *actions: Any, dry_run: bool = False) -> int:
        name = self.kept.service.name(None, "shop", "orders")
        order = Order(name=name, actions=parse(actions), engine=engine, dry_run=dry_run)
        return await self.kept.service.submit(order, actor="me")

    async def is_over(self, job_id: int) -> bool:
        return (await self.store.job(job_id)).status.over

    async def over(self, job_id: int) -> Any:
        await until(lambda: self.is_over(job_id), within=SPARK_PATIENCE)
        return await self.store.job(job_id)

    def hold_commit(self) -> Gate:
        return self.spark.door.hold(*COMMIT)

    async def told(self, job_id: int) -> dict[str, dict[str, Any]]:
        return {
            row["action"]: row["result"] for row in await self.kept.service.store.actions(job_id)
        }

    async def state(self, job_id: int) -> dict[str, Any]:
        """What the job's next look begins with."""
        async with connected(self.dsn) as db:
            document = await db.fetchval(
                "SELECT state FROM penstock.live WHERE job_id = $1", job_id
            )
        return dict(json.loads(document)) if document else {}

    async def under_way(self, job_id: int, gate: Gate) -> RemoteQuery:
        """The statement has come to the gate, and its handle is written down."""

        async def is_it() -> bool:
            handle = (await self.state(job_id)).get("handle", {})
            return gate.reached.is_set() and bool({"operation_secret", "started"} & set(handle))

        await until(is_it, within=SPARK_PATIENCE)
        return await self.stored_query(job_id)

    async def stored_query(self, job_id: int) -> RemoteQuery:
        return RemoteState.read(await self.state(job_id)).query

    async def looked_at(self, job_id: int) -> None:
        async def is_it() -> bool:
            return (await self.store.job(job_id)).status is Status.RUNNING

        await until(is_it, within=SPARK_PATIENCE)

    async def gone(self, engine: str, query: RemoteQuery) -> None:
        """Spark does not run it any more."""
        async with open_engine(self.spark.engines[engine], "test") as there:

            async def is_it() -> bool:
                return isinstance(await there.look(query, "", again=False), Failed)

            await until(is_it, within=SPARK_PATIENCE)

    async def lapse(self) -> None:
        async with connected(self.dsn) as db:
            await db.execute(
                "UPDATE penstock.live SET lease_until = penstock.now() - interval '1 s' "
                "WHERE status = 1"
            )
        await self.store.reap()


@asynccontextmanager
async def spark_scene(database: str, home: Path, spark: Spark) -> AsyncIterator[SparkScene]:
    catalog = {"warehouse": (home / "warehouse").as_uri()}
    config = settings(home, catalogs={"lake": catalog}, maintenance_engines=spark.engines)
    async with running_deployment(database, config) as plane:
        scene = SparkScene(plane)
        scene.spark, scene.dsn = spark, database
        spark.door.reset(scene.url)
        await asyncio.to_thread(scene.table.create, partitioned=True)
        yield scene
        spark.door.reset()
