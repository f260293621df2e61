"""A table of a namespace in a namespace, from the command line and the client to the worker and
back.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.jobs.model import Status
from penstock.maintenance.actions.model import parse
from penstock.maintenance.payloads import Order
from tests.maintenance.tables import SCHEMA, SampleTable, rows
from tests.maintenance.test_lifecycle import scene  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.maintenance.test_lifecycle import Scene

NAME = "lake.deep.er.orders"


def nested(table: SampleTable, location: str | None = None) -> SampleTable:
    table.catalog.create_namespace_if_not_exists(("deep", "er"))
    table.catalog.create_table(("deep", "er", "orders"), SCHEMA, location=location)
    other = SampleTable(table.catalog, ("deep", "er", "orders"))
    for number in range(6):
        other.table.append(rows(number * 10, 10))
    return other


async def penstock_cli(scene: Scene, *arguments: str) -> Any:  # noqa: F811
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    environment |= {"PENSTOCK_URL": scene.url, "PENSTOCK_API_KEY": "operator", "NO_COLOR": "1"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "penstock.cli",
        *arguments,
        "--json",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


async def test_the_client_and_the_command_line_reach_it(scene: Scene) -> None:  # noqa: F811
    table = await asyncio.to_thread(nested, scene.table)

    def look() -> tuple[int, list[str]]:
        with penstock.connect(scene.url, api_key="operator") as ps:
            score = ps.tables[NAME].health()["score"]
            ps.tables.refresh()
            listed = ps.tables.all(db="deep.er")
            return score, [f"{t['catalog']}.{t['db']}.{t['table']}" for t in listed]

    assert await asyncio.to_thread(look) == (100, [NAME])
    assert {row["db"] for row in await penstock_cli(scene, "table", "list")} == {"shop", "deep.er"}
    assert (await penstock_cli(scene, "table", "health", NAME))["level"] == "healthy"
    planned = await penstock_cli(scene, "maintain", NAME, "manifests", "--dry-run")
    assert [outcome["status"] for outcome in planned["outcomes"]] == ["planned"]
    async with scene.working():
        [action] = await penstock_cli(scene, "maintain", NAME, "manifests")
    assert action["status"] == "completed"
    history = await penstock_cli(scene, "table", "history", NAME)
    assert [row["status"] for row in history] == ["succeeded"]
    assert len(await asyncio.to_thread(table.ids)) == 60


def age(folder: str) -> None:
    for path in Path(folder.removeprefix("file://")).rglob("*"):
        os.utime(path, (0, 0))


@pytest.mark.parametrize("spoil", [lambda path: None, Path.unlink], ids=["readable", "unreadable"])
async def test_a_worker_does_not_touch_its_files_though_they_lie_in_another_table(
    scene: Scene,  # noqa: F811
    spoil: Callable[[Path], None],
) -> None:
    location = await asyncio.to_thread(scene.table.table.location)
    inner = await asyncio.to_thread(nested, scene.table, f"{location}/data/inner")
    metadata = await asyncio.to_thread(lambda: inner.table.metadata_location)
    spoil(Path(metadata.removeprefix("file://")))
    await asyncio.to_thread(age, location)
    files = sorted(Path(location.removeprefix("file://")).rglob("*"))
    name = scene.kept.service.name(None, "shop", "orders")
    order = Order(name=name, actions=parse(["remove_orphan_files"]))
    job_id = await scene.kept.service.submit(order, actor="me")
    async with scene.working():
        view = await scene.over(job_id)
    assert (view.status, view.error["code"]) == (Status.FAILED, "MAINTENANCE_REFUSED")
    assert "deep.er.orders" in view.error["message"]
    assert sorted(Path(location.removeprefix("file://")).rglob("*")) == files
