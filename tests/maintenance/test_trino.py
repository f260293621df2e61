from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from penstock.kit.errors import InvalidInput
from penstock.kit.outbound import FOR_OPERATOR
from penstock.maintenance.actions.context import ActionContext
from penstock.maintenance.actions.model import parse
from penstock.maintenance.engines.trino_sql import statement
from penstock.maintenance.errors import Refused
from penstock.maintenance.payloads import Order, TableName
from penstock.maintenance.tables.catalog.catalogs import Catalogs
from penstock.sources.trino.client import Client
from penstock.sources.trino.config import Config
from penstock.sources.trino.headers import Session
from penstock.sources.trino.wire import Wire
from tests.graphs.deployment import running_deployment, settings, until
from tests.maintenance.tables import COMPACT, SampleTable
from tests.maintenance.test_lifecycle import Scene
from tests.servers.process import free_ports
from tests.servers.trino import Trino, trino
from tests.servers.weed import weed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = TableName(catalog="lake", db="shop", table="orders")


@pytest.mark.parametrize(
    ("action", "call"),
    [
        ("expire_snapshots", "expire_snapshots(retention_threshold => '604800s')"),
        (
            {"name": "rewrite_data_files", "where": "day = 'd1'"},
            "optimize(file_size_threshold => '100MB') WHERE day = 'd1'",
        ),
        ("rewrite_manifests", "optimize_manifests"),
        (
            {"name": "remove_orphan_files", "older_than_seconds": 864_000},
            "remove_orphan_files(retention_threshold => '864000s')",
        ),
    ],
)
def test_an_action_is_one_statement_that_says_who_asks(action: Any, call: str) -> None:
    sql = statement(parse([action])[0], NAME, "kept", ActionContext(job_id=7, attempt="a"))
    assert sql.endswith(f'*/ ALTER TABLE "kept"."shop"."orders" EXECUTE {call}')
    assert sql.startswith('/* {"app":"penstock","job":7,')


@pytest.mark.parametrize(
    "action", ["rewrite_position_delete_files", {"name": "rewrite_data_files", "max_files": 3}]
)
def test_what_trino_has_no_word_for_is_refused(action: Any) -> None:
    with pytest.raises(Refused):
        statement(parse([action])[0], NAME, "kept", ActionContext(job_id=7, attempt="a"))


def test_an_engine_that_is_not_whole_is_refused() -> None:
    with pytest.raises(InvalidInput, match="far"):
        Catalogs({}, {"far": {"type": "presto"}})


@contextmanager
def serving(folder: Path, url: str, s3: Any) -> Iterator[Trino]:
    properties = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": f"{url}/api/iceberg/lake",
        "iceberg.rest-catalog.security": "OAUTH2",
        "iceberg.rest-catalog.oauth2.token": "operator",
        "fs.native-s3.enabled": "true",
        "s3.endpoint": s3.endpoint,
        "s3.region": "us-east-1",
        "s3.path-style-access": "true",
        "s3.aws-access-key": s3.access_key,
        "s3.aws-secret-key": s3.secret_key,
    }
    with trino(folder, {"kept": properties}) as server:
        yield server


async def ask(server: Trino, sql: str) -> list[list[Any]]:
    config = Config(url=server.url, user="tester", role_catalog=None)
    client = Client(config, Wire(config, FOR_OPERATOR))
    try:
        return await client.rows(sql, Session(role=None))
    finally:
        await client.close()


async def test_trino_reads_what_we_maintained_on_s3_and_maintains_it_itself(
    database: str, tmp_path: Path
) -> None:
    for name in ("weed", "trino"):
        (tmp_path / name).mkdir()
    with weed(tmp_path / "weed", "lake") as (s3, _):
        await until(lambda: asyncio.to_thread(s3.ready))
        [port] = free_ports(1)
        catalog = {
            "warehouse": f"s3://{s3.bucket}/tables",
            "s3.endpoint": s3.endpoint,
            "s3.access-key-id": s3.access_key,
            "s3.secret-access-key": s3.secret_key,
            "s3.region": "us-east-1",
        }
        far = {"type": "trino", "url": f"http://127.0.0.1:{port}", "catalog": "kept"}
        config = settings(tmp_path, catalogs={"lake": catalog}, maintenance_engines={"far": far})
        async with running_deployment(database, config) as plane:
            scene = Scene(plane)
            await asyncio.to_thread(_maintained, scene.table)
            with serving(tmp_path / "trino", scene.url, s3) as server:
                scene.kept.service.pool.catalogs.engines["far"] = far | {"url": server.url}
                await _compare(scene.table, server)
                await asyncio.to_thread(_small_files, scene.table)
                await _maintain_there(scene, server)


def _maintained(table: SampleTable) -> None:
    """Rewritten, with deletes applied, merged and still pending, manifests rewritten, snapshots
    expired."""
    table.create(partitioned=True)
    table.delete([3, 14])
    table.run({**COMPACT, "where": "day = 'd0'"})
    table.run("rewrite_position_delete_files")
    table.run("rewrite_manifests")
    table.run({"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1})


def _small_files(table: SampleTable) -> None:
    for n in range(3):
        table.append(1000 + 10 * n, 10)


async def _compare(table: SampleTable, server: Trino) -> None:
    answer = await ask(server, 'SELECT id, day, note FROM "kept"."shop"."orders" ORDER BY id')
    rows = await asyncio.to_thread(table.all_rows)
    assert answer == [(row["id"], row["day"], row["note"]) for row in rows]
    assert len(answer) == 58


async def _maintain_there(scene: Scene, server: Trino) -> None:
    before = await asyncio.to_thread(scene.table.ids)
    actions = parse(["rewrite_data_files", "rewrite_manifests", "rewrite_position_delete_files"])
    order = Order(
        name=scene.kept.service.name(None, "shop", "orders"), actions=actions, engine="far"
    )
    job_id = await scene.kept.service.submit(order, actor="me")
    async with scene.working():
        await scene.over(job_id)
    results = {a["action"]: a for a in await scene.kept.service.store.actions(job_id)}
    compacted = results["rewrite_data_files"]["result"]
    assert (compacted["status"], compacted["engine"]) == ("completed", "trino"), compacted
    assert compacted["after"]["files"] < compacted["before"]["files"]
    assert results["rewrite_position_delete_files"]["status"] == "refused"
    assert await asyncio.to_thread(scene.table.ids) == before
    assert (await scene.plane.services.store.job(job_id)).result["actions"][
        "rewrite_data_files"
    ] == "completed"
