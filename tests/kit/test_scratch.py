"""Scratch folders of real processes: alive, killed, and killed with their process number given to
another."""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock
from penstock.kit.scratch import MARKER, Scratch, scratch_folder, sweep

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

OWNER = """
import sys, pathlib, signal
from penstock.kit.scratch import Scratch
scratch = Scratch.create("run-7", within=pathlib.Path(sys.argv[1]))
(scratch.path / "deep" / "er").mkdir(parents=True)
(scratch.path / "deep" / "er" / "rows").write_bytes(b"x" * 1000)
print(scratch.path, flush=True)
signal.pause()
"""
SWEEPER = """
import sys, pathlib
from penstock.kit.scratch import sweep
print(sweep(pathlib.Path(sys.argv[1])).total, flush=True)
"""
CUT_SHORT = """
import os, pathlib, shutil, signal, sys
from penstock.kit import scratch
remove = shutil.rmtree
def then_die(path):
    remove(path)
    os.kill(os.getpid(), signal.SIGKILL)
scratch.shutil.rmtree = then_die
scratch.sweep(pathlib.Path(sys.argv[1]))
"""
SLEEPER = "import signal; signal.pause()"
_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


@asynccontextmanager
async def running(code: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip()


@asynccontextmanager
async def owner(root: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, Path]]:
    async with running(OWNER, str(root)) as process:
        yield process, Path(await line(process))


async def killed_owner(root: Path) -> tuple[int, Path]:
    async with owner(root) as (process, folder):
        process.send_signal(signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL
        return process.pid, folder


async def test_the_folder_of_a_live_process_is_left_alone_by_everybody(tmp_path: Path) -> None:
    async with owner(tmp_path) as (_, folder), running(SWEEPER, str(tmp_path)) as other:
        assert await line(other) == "0"
        assert sweep(tmp_path).removed == ()
        assert (folder / "deep/er/rows").stat().st_size == 1000


async def test_the_folder_of_a_killed_process_is_swept(tmp_path: Path) -> None:
    async with owner(tmp_path) as (_, alive):
        _, folder = await killed_owner(tmp_path)
        assert (folder / "deep/er/rows").exists()
        assert sweep(tmp_path).removed == (folder,)
        assert list(tmp_path.iterdir()) == [alive]


@pytest.mark.skipif(
    not os.access(_LAST_PID, os.W_OK), reason="only root can choose a process number"
)
def test_a_folder_is_swept_though_another_process_has_the_number_of_its_owner(
    tmp_path: Path,
) -> None:
    """Without asyncio, whose watcher of children takes two of one number for the same."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        folder, pid = Path(first.stdout.readline().strip()), first.pid
        first.kill()
    assert f"process {pid} " in (folder / MARKER).read_text()
    for _ in range(200):
        _LAST_PID.write_text(str(pid - 1))
        with subprocess.Popen([sys.executable, "-c", SLEEPER]) as stranger:
            alike = stranger.pid == pid
            swept = sweep(tmp_path).removed if alike else ()
            stranger.kill()
        if alike:
            assert swept == (folder,)
            return
    pytest.fail(f"nobody was given the number {pid}")


async def test_a_sweep_that_is_cut_short_is_ended_by_the_next_one(tmp_path: Path) -> None:
    _, folder = await killed_owner(tmp_path)
    (folder / "another").mkdir()
    async with running(CUT_SHORT, str(tmp_path)) as process:
        assert await asyncio.wait_for(process.wait(), 30) == -signal.SIGKILL
    assert len(list(folder.iterdir())) == 2, "one of the two folders is gone, the marker is not"
    assert sweep(tmp_path).removed == (folder,)
    assert list(tmp_path.iterdir()) == []


async def test_what_is_no_scratch_folder_of_ours_is_left_alone(tmp_path: Path) -> None:
    stranger = tmp_path / "penstock-run-of-an-older-version"
    stranger.mkdir()
    (tmp_path / "penstock-file").write_text("")
    (tmp_path / "penstock-link").symlink_to(stranger)
    other = tmp_path / "another-program"
    other.mkdir()
    (other / MARKER).write_text("")
    assert sweep(tmp_path).removed == ()
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
async def test_the_folder_of_another_user_is_left_alone(tmp_path: Path) -> None:
    _, folder = await killed_owner(tmp_path)
    os.chown(folder, 65534, 65534)
    assert sweep(tmp_path).removed == ()
    assert folder.exists()


def test_a_folder_goes_with_its_work_and_with_its_failure(tmp_path: Path) -> None:
    with scratch_folder("sort", within=tmp_path) as folder:
        (folder / "spill").mkdir()
        assert folder.name.startswith("penstock-sort-")
    with pytest.raises(RuntimeError), scratch_folder("sort", within=tmp_path):
        raise RuntimeError("the work failed")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_somebody_removed_is_no_error(tmp_path: Path) -> None:
    scratch = Scratch.create("sort", within=tmp_path)
    shutil.rmtree(scratch.path)
    scratch.remove()
    scratch.remove()


async def test_a_worker_sweeps_when_it_starts(tmp_path: Path) -> None:
    _, folder = await killed_owner(tmp_path)
    code = (
        "from penstock.wiring import settings; from penstock.wiring.worker import run_worker;"
        " run_worker(settings.load())"
    )
    environment = {
        "TMPDIR": str(tmp_path),
        "PENSTOCK_URL": "http://127.0.0.1:1",
        "PENSTOCK_SERVICE_TOKEN": "token",
        "PENSTOCK_WORKER_PORT": "0",
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=environment)
    try:
        async with asyncio.timeout(30):
            while folder.exists():  # noqa: ASYNC110 - a file system has no event for it
                await asyncio.sleep(0.02)
    finally:
        process.kill()
        await process.wait()


ALLOWED = {
    "kit/scratch.py",
    "kit/postgres/paths.py",  # a data directory, which stays
    "kit/postgres/detached.py",  # a file without a name
    "launchers/folders.py",  # a folder for sockets, which is used again
    "graphdb/files/parquet_conformance.py",  # inside an instance's own folder, and removed with it
}


def test_every_temporary_folder_is_a_scratch_folder() -> None:
    """Whoever makes one without the other module leaves it behind when its process is killed."""
    root = Path(penstock.__file__).parent
    users = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if (isinstance(node, ast.Import) and any(name.name == "tempfile" for name in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "tempfile")
    }
    assert users == ALLOWED
