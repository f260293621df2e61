"""The control plane is killed, and comes back: every instance runs and is known, or is gone;
nothing is left over."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from penstock.launchers.subprocess import SubprocessLauncher
from tests.graphs.deployment import until
from tests.graphs.fleet import sailing, sink, stand_in, tell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ADA = {"Authorization": "Bearer ada"}


class Plane:
    """A control plane that can be killed without a word, and started again."""

    def __init__(self, dsn: str, home: Path) -> None:
        self._dsn = dsn
        self._home = home
        self.more: dict[str, Any] = {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.http = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}", timeout=30, headers=ADA
        )
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        arguments = (
            "-m",
            "tests.graphs.control_plane_child",
            self._dsn,
            str(self._home),
            str(self.port),
            *([json.dumps(self.more, default=str)] if self.more else []),
        )
        self._process = await asyncio.create_subprocess_exec(sys.executable, *arguments)
        await until(self._ready)

    async def _ready(self) -> bool:
        try:
            return (await self.http.get("/ready")).is_success
        except httpx2.TransportError:
            return False

    async def kill(self) -> None:
        assert self._process is not None
        self.kill_now()
        await self._process.wait()

    def kill_now(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def create(self, snapshot_id: int) -> dict[str, Any]:
        answer = await self.http.post(
            "/api/instances", json={"name": "n", "snapshot_id": snapshot_id}
        )
        assert answer.status_code == 201, answer.text
        instance: dict[str, Any] = answer.json()["data"]
        return instance

    async def all(self) -> dict[int, dict[str, Any]]:
        return {
            instance["id"]: instance
            for instance in (await self.http.get("/api/instances")).json()["data"]
        }


@pytest.fixture
async def snapshot_id(database: str, tmp_path: Path) -> int:
    async with sailing(database, tmp_path / "home") as fleet:
        return await fleet.snapshot()


@pytest.fixture
async def plane(database: str, tmp_path: Path, snapshot_id: int) -> AsyncIterator[Plane]:
    control_plane = Plane(database, tmp_path / "home")
    await control_plane.start()
    yield control_plane
    await control_plane.kill()
    await control_plane.http.aclose()
    await sink(SubprocessLauncher(tmp_path / "home" / "instances"))


def processes(home: Path) -> set[int]:
    """Every stand-in that runs, whether anybody knows it or not."""
    command = "\0".join(stand_in(home / "control.json")).encode()
    pids = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if file.read_bytes().startswith(command):
                pids.add(int(file.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return pids


async def test_servers_outlive_the_control_plane_and_are_known_to_the_next_one(
    plane: Plane, snapshot_id: int, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    instances = [await plane.create(snapshot_id) for _ in range(3)]

    async def all_run() -> bool:
        return {instance["status"] for instance in (await plane.all()).values()} == {"running"}

    await until(all_run)
    before = processes(home)
    assert len(before) == 3
    tell(home / "control.json", hold=True)
    starting = await plane.create(snapshot_id)

    async def loads() -> bool:
        return bool((await plane.all())[starting["id"]]["progress"]["phase"] == "loading_data")

    await until(loads)
    await plane.kill()
    assert before < processes(home), "they run on"
    await plane.start()
    tell(home / "control.json")
    await until(all_run)
    assert before < processes(home), "they are the same"
    assert len(processes(home)) == 4
    health = await plane.http.get(f"/wrapper/{instances[0]['url_slug']}/health")
    assert health.json()["pid"] in before
    await plane.http.post(f"/wrapper/{instances[1]['url_slug']}/die")

    async def noticed() -> bool:
        return bool(
            (await plane.all())[instances[1]["id"]]["error_code"] == "UNEXPECTED_TERMINATION"
        )

    await until(noticed)
    for instance in (*instances, starting):
        answer = await plane.http.post(f"/api/instances/{instance['id']}/terminate")
        assert answer.json()["data"]["status"] == "terminated"
    assert processes(home) == set()
    assert await plane.all() == {}


async def test_what_ended_while_nobody_looked_is_known_afterwards(
    plane: Plane, snapshot_id: int, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    instance = await plane.create(snapshot_id)

    async def runs() -> bool:
        return bool((await plane.all())[instance["id"]]["status"] == "running")

    await until(runs)
    await plane.kill()
    launcher = SubprocessLauncher(home / "instances")
    [process] = await launcher.list()
    await launcher.stop(process.handle, grace=0)
    await plane.start()

    async def failed() -> bool:
        return bool((await plane.all())[instance["id"]]["status"] == "failed")

    await until(failed)
    assert (await plane.all())[instance["id"]]["error_code"] == "UNEXPECTED_TERMINATION"


async def test_whenever_the_control_plane_is_killed_rows_and_processes_agree_in_the_end(
    plane: Plane, snapshot_id: int, tmp_path: Path
) -> None:
    home, chance = tmp_path / "home", random.Random(7)
    for _ in range(3):
        instances = await asyncio.gather(*(plane.create(snapshot_id) for _ in range(2)))
        ending = asyncio.create_task(
            plane.http.post(f"/api/instances/{instances[0]['id']}/terminate")
        )
        await asyncio.sleep(chance.uniform(0, 0.25))
        await plane.kill()
        await asyncio.gather(ending, return_exceptions=True)
        await plane.start()

    async def settled() -> bool:
        return {instance["status"] for instance in (await plane.all()).values()} <= {"running"}

    await until(settled)

    async def agree() -> bool:
        return len(processes(home)) == len(await plane.all())

    await until(agree)
    rows = await plane.all()
    assert len(rows) >= 3
    listed = await SubprocessLauncher(home / "instances").list()
    assert {process.handle.instance_id for process in listed if process.alive} == set(rows)
    for instance in rows.values():
        assert (await plane.http.get(f"/wrapper/{instance['url_slug']}/health")).status_code == 200
