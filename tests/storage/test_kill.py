"""SIGKILL at every step of an export and its commit: readers see all or nothing, and one sweep
leaves no byte."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.storage.errors import ObjectMissing
from penstock.storage.manifest import check_parts, read_manifest
from penstock.storage.object_store import open_store
from penstock.storage.sweeper import Sweeper
from tests.storage import killed_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.storage.contract import Store
    from tests.storage.conftest import Place


class Victims:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    async def run(self, **order: Any) -> int:
        return await asyncio.to_thread(self._run, json.dumps(order))

    def _run(self, order: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    command = [sys.executable, "-m", "tests.storage.killed_process"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Victims(process)


async def test_a_kill_at_any_step_shows_nothing_half_done_and_one_sweep_leaves_no_orphan(
    place: Place, victims: Victims, tmp_path: Path
) -> None:
    order = {
        "options": asdict(place.options),
        "attempt": "attempt-1",
        "log": str(tmp_path / "steps"),
    }
    assert await victims.run(url=_root(place, 0), kill_at=0, **order) == 0
    steps = (tmp_path / "steps").read_text().splitlines()
    assert_every_kind_of_step(steps)
    outcomes = []
    for number, step in enumerate(steps, start=1):
        url = _root(place, number)
        assert await victims.run(url=url, kill_at=number, **order) == -signal.SIGKILL, step
        outcomes.append(await survey(open_store(url, options=place.options), step))
    assert outcomes == sorted(outcomes), "once committed, always committed"
    assert outcomes.count(True) == 1, "only the very last step has a manifest"


def assert_every_kind_of_step(steps: list[str]) -> None:
    text = "\n".join(steps)
    for landmark in (
        "before put part-00000-attempt-1.parquet.claim",
        "after a write to the upload",
        "before the upload is completed",
        "after the upload is completed",
        "before delete part-00000-attempt-1.parquet.claim",
        "after delete part-00000-attempt-1.parquet.claim",
        "before put part-00001-attempt-1.parquet",
        "after put part-00001-attempt-1.parquet",
        "before put_async manifest.json",
    ):
        assert landmark in text
    assert steps[-1] == "after put_async manifest.json"


async def survey(store: Store, step: str) -> bool:
    """Read, sweep, read again; says whether the result is there."""
    before = await readable(store)
    await Sweeper(store, "owner/7/v1/", floor=timedelta(0)).run_once()
    assert await readable(store) == before, step
    remaining = {info.key async for info in store.list("")}
    named = (
        {part.path for part in (await read_manifest(store, killed_process.PREFIX)).parts}
        if before
        else set()
    )
    assert remaining == (named | {killed_process.PREFIX + "manifest.json"} if before else set()), (
        step
    )
    assert not await store.uploads.under(""), step
    assert_no_hidden_file(store, len(remaining), step)
    return before


async def readable(store: Store) -> bool:
    try:
        manifest = await read_manifest(store, killed_process.PREFIX)
    except ObjectMissing:
        return False
    await check_parts(store, manifest)
    tables = [pq.read_table(pa.BufferReader(await store.get(part.path))) for part in manifest.parts]
    assert pa.concat_tables(tables).equals(killed_process.table())
    return True


def assert_no_hidden_file(store: Store, visible: int, step: str) -> None:
    if store.url.startswith("file://"):
        files = [
            path for path in Path(store.url.removeprefix("file://")).rglob("*") if path.is_file()
        ]
        assert len(files) == visible, step


def _root(place: Place, number: int) -> str:
    url = f"{place.url}/kill-{number}"
    if place.kind == "folder":
        Path(url.removeprefix("file://")).mkdir()
    return url
