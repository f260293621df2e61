"""Processes of this machine: their limits, their logs, and that none is ever lost or mistaken."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.launchers import supervisor
from penstock.launchers.contract import Ended, Handle, LaunchRequest
from penstock.launchers.errors import LaunchFailed
from penstock.launchers.subprocess import SubprocessLauncher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

GIB = 1024**3
RUN = Handle(instance_id=7, launch=1)


def server(text: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", text)


SLEEPER = server("import time\nprint('up', flush=True)\ntime.sleep(600)")
STUBBORN = server(
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('up', flush=True)\ntime.sleep(600)"
)
PARENT = server(
    "import os, time\nif not os.fork():\n    os.setsid()\n"
    "print(os.getpid(), flush=True)\ntime.sleep(600)"
)
EATER = server(
    "import time\nkept = []\nprint('up', flush=True)\n"
    "while True:\n    kept.append(bytearray(b'x') * (4 << 20))\n    time.sleep(0.01)"
)
SHOW = server(
    "import json, os, sys\n"
    "cores = sorted(os.sched_getaffinity(0))\n"
    "shown = [dict(os.environ), cores, os.getcwd(), json.load(sys.stdin)]\n"
    "print(json.dumps(shown))"
)


def order(
    handle: Handle = RUN, *, memory: int = GIB, cpu: int = 1, secret: str = "storage-secret"
) -> LaunchRequest:
    return LaunchRequest(
        handle=handle,
        slug="s",
        owner="me",
        backend="ladybug",
        memory_bytes=memory,
        cpu_cores=cpu,
        token="instance-token",
        control_plane_url="http://127.0.0.1:1",
        environment={"PENSTOCK_STORAGE_URL": "file:///there"},
        secrets={"PENSTOCK_STORAGE_SECRET_ACCESS_KEY": secret},
    )


async def until(true: Callable[[], bool], within: float = 15.0) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


class Yard:
    """Launchers of one root, and their end."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def launcher(self, command: tuple[str, ...]) -> SubprocessLauncher:
        return SubprocessLauncher(self.root, command=command)

    def pids(self, handle: Handle = RUN) -> tuple[int, int]:
        record = json.loads(self.file(supervisor.PROCESS, handle).read_text())
        return record["pid"], record["child"]

    def file(self, name: str, handle: Handle = RUN) -> Path:
        return self.root / str(handle.instance_id) / str(handle.launch) / name

    async def log_text(self, handle: Handle = RUN) -> str:
        await until(
            lambda: (
                self.file(supervisor.LOG, handle).exists()
                and self.file(supervisor.LOG, handle).stat().st_size > 0
            )
        )
        return self.file(supervisor.LOG, handle).read_text()


@pytest.fixture
async def yard(short_dir: Path, tmp_path: Path) -> AsyncIterator[Yard]:
    new_yard = Yard(short_dir / f"i{abs(hash(tmp_path)) % 10**8}")
    yield new_yard
    launcher = new_yard.launcher(SLEEPER)
    for process in await launcher.list():
        await launcher.stop(process.handle, grace=0)
    shutil.rmtree(new_yard.root, ignore_errors=True)


def alive(pid: int) -> bool:
    return supervisor.start_time(pid) is not None


async def test_a_run_is_begun_once_however_often_it_is_asked_for(yard: Yard) -> None:
    first, second = yard.launcher(SLEEPER), yard.launcher(SLEEPER)
    await asyncio.gather(*(launcher.start(order()) for launcher in (first, second) * 3))
    pids = yard.pids()
    await first.start(order())
    assert yard.pids() == pids
    [process] = await second.list()
    assert (process.handle, process.alive) == (RUN, True)
    await second.stop(RUN, grace=5)
    assert not any(map(alive, pids))
    assert await first.inspect(RUN) == await second.inspect(RUN)
    await first.start(order())
    assert not any(map(alive, yard.pids())), "a run that is over is never begun again"


async def test_a_place_is_named_once_for_all_who_use_it(yard: Yard, short_dir: Path) -> None:
    names = {yard.launcher(SLEEPER).place for _ in range(3)}
    assert len(names) == 1
    assert SubprocessLauncher(short_dir / "elsewhere", command=SLEEPER).place not in names


async def test_a_launcher_that_comes_later_knows_what_runs_and_how_the_rest_ended(
    yard: Yard,
) -> None:
    await yard.launcher(SLEEPER).start(order())
    other = Handle(instance_id=8, launch=3)
    await yard.launcher(server("raise SystemExit(3)")).start(order(other))
    later = yard.launcher(SLEEPER)
    assert await asyncio.wait_for(later.wait(other), 10) == Ended(code=3)
    processes = {process.handle: process for process in await later.list()}
    assert processes[RUN].alive
    assert processes[other].ended == Ended(code=3)
    waiting = asyncio.create_task(later.wait(RUN))
    os.kill(yard.pids()[1], signal.SIGSEGV)
    assert await asyncio.wait_for(waiting, 10) == Ended(code=-signal.SIGSEGV)


async def test_a_server_that_does_not_hear_is_killed_after_its_grace(yard: Yard) -> None:
    launcher = yard.launcher(STUBBORN)
    await launcher.start(order())
    assert await yard.log_text() == "up\n"
    pids, began = yard.pids(), time.monotonic()
    await launcher.stop(RUN, grace=0.3)
    assert time.monotonic() - began >= 0.3
    assert not any(map(alive, pids))
    process = await launcher.inspect(RUN)
    assert process is not None
    assert process.ended == Ended(code=-signal.SIGKILL)


async def test_what_a_server_has_started_ends_with_it_even_in_a_session_of_its_own(
    yard: Yard,
) -> None:
    launcher = yard.launcher(PARENT)
    await launcher.start(order())
    await until(
        lambda: (
            yard.file(supervisor.LOG).exists()
            and yard.file(supervisor.LOG).read_text().count("\n") == 2
        )
    )
    family = [int(line) for line in yard.file(supervisor.LOG).read_text().split()]
    os.kill(yard.pids()[1], signal.SIGKILL)
    await asyncio.wait_for(launcher.wait(RUN), 10)
    assert not any(map(alive, family))


async def test_a_server_dies_with_its_warden_and_is_said_to_have_vanished(yard: Yard) -> None:
    launcher = yard.launcher(SLEEPER)
    await launcher.start(order())
    keeper, child = yard.pids()
    os.kill(keeper, signal.SIGKILL)
    assert await asyncio.wait_for(launcher.wait(RUN), 10) == Ended(code=None)
    await until(lambda: not alive(child))


@pytest.mark.parametrize("change", ["start", "boot"])
async def test_a_pid_that_went_to_somebody_else_is_neither_believed_nor_hit(
    yard: Yard, change: str
) -> None:
    launcher = yard.launcher(server("pass"))
    await launcher.start(order())
    await asyncio.wait_for(launcher.wait(RUN), 10)
    with subprocess.Popen(SLEEPER, stdout=subprocess.DEVNULL) as stranger:  # noqa: ASYNC220 - it returns at once
        start = supervisor.start_time(stranger.pid)
        assert start is not None
        record = {
            "pid": stranger.pid,
            "start": start,
            "boot": supervisor.boot_id(),
            "child": stranger.pid,
        }
        record[change] = start + 1 if change == "start" else "another boot"
        yard.file(supervisor.PROCESS).write_text(json.dumps(record))
        process = await launcher.inspect(RUN)
        assert process is not None
        assert not process.alive
        await launcher.stop(RUN, grace=0)
        assert await launcher.usage(RUN) is None
        assert stranger.poll() is None
        stranger.kill()


async def test_a_server_that_nobody_attends_to_any_more_ends_in_time(yard: Yard) -> None:
    launcher = SubprocessLauncher(yard.root, command=SLEEPER, unattended_seconds=1.0)
    await launcher.start(order())
    child = yard.pids()[1]
    until_then = time.monotonic() + 2.5
    while time.monotonic() < until_then:
        await launcher.attend()
        assert alive(child)
        await asyncio.sleep(0.05)
    assert await asyncio.wait_for(launcher.wait(RUN), 15) == Ended(code=-signal.SIGKILL)
    assert "no control plane for 1 s" in await launcher.logs(RUN, tail=1000)


async def test_memory_past_the_limit_ends_a_run_and_says_so(yard: Yard) -> None:
    launcher = yard.launcher(EATER)
    await launcher.start(order(memory=96 << 20))
    assert await asyncio.wait_for(launcher.wait(RUN), 30) == Ended(code=-signal.SIGKILL, oom=True)
    assert "100663296 allowed" in await launcher.logs(RUN, tail=1000)


async def test_more_memory_and_cores_reach_a_run_that_is_under_way(yard: Yard) -> None:
    launcher = yard.launcher(SLEEPER)
    await launcher.start(order(cpu=1))
    child = yard.pids()[1]
    assert len(os.sched_getaffinity(child)) == 1
    everything = len(os.sched_getaffinity(0))
    await launcher.resize(RUN, cpu_cores=8, memory_bytes=GIB)
    await until(lambda: len(os.sched_getaffinity(child)) == everything)
    usage = await launcher.usage(RUN)
    assert usage is not None
    assert 0 < usage.memory_bytes < 64 << 20
    assert usage.disk_bytes > 0
    await launcher.resize(RUN, cpu_cores=1, memory_bytes=1)
    assert (await asyncio.wait_for(launcher.wait(RUN), 10)).oom


async def test_a_server_is_told_what_it_needs_and_nothing_else_of_ours(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "PENSTOCK_DATABASE_URL",
        "PENSTOCK_SECRET_KEY",
        "PENSTOCK_SERVICE_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
    ):
        monkeypatch.setenv(name, "canary")
    launcher = yard.launcher(SHOW)
    await launcher.start(order(cpu=1))
    await asyncio.wait_for(launcher.wait(RUN), 10)
    environment, affinity, where, secrets = json.loads(await launcher.logs(RUN, tail=10_000))
    assert "canary" not in environment.values()
    assert secrets == {
        "PENSTOCK_INSTANCE_TOKEN": "instance-token",
        "PENSTOCK_STORAGE_SECRET_ACCESS_KEY": "storage-secret",
    }
    assert not set(secrets.values()) & set(environment.values())
    assert environment["PENSTOCK_STORAGE_URL"] == "file:///there"
    assert environment["PENSTOCK_INSTANCE_SOCKET"] == launcher.address(RUN).socket
    assert len(affinity) == 1
    folder = yard.file("")
    assert where == str(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((yard.root / "sockets").stat().st_mode) == 0o700
    written = b"".join(
        file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name != supervisor.LOG
    )
    assert b"instance-token" not in written


async def test_no_process_of_a_run_has_a_secret_in_its_environment_or_command_line(
    yard: Yard,
) -> None:
    launcher = yard.launcher(SLEEPER)
    await launcher.start(order())
    for pid in yard.pids():
        for shown in ("environ", "cmdline"):
            content = Path(f"/proc/{pid}/{shown}").read_bytes()
            assert b"instance-token" not in content
            assert b"storage-secret" not in content


async def test_secrets_may_fill_a_pipe_and_not_overfill_it(yard: Yard) -> None:
    launcher = yard.launcher(server("import json, sys\nprint(len(sys.stdin.read()), flush=True)"))
    empty = len(
        json.dumps({"PENSTOCK_INSTANCE_TOKEN": "instance-token", **order(secret="").secrets})
    )
    most = supervisor.SECRET_BYTES - empty
    await launcher.start(order(secret="x" * most))
    await asyncio.wait_for(launcher.wait(RUN), 10)
    assert await launcher.logs(RUN, tail=100) == f"{supervisor.SECRET_BYTES}\n"
    with pytest.raises(LaunchFailed, match="60001 bytes; the maximum is 60000"):
        await launcher.start(order(Handle(instance_id=8, launch=1), secret="x" * (most + 1)))


async def test_a_log_is_cut_and_kept_when_its_run_is_removed(yard: Yard) -> None:
    lines = 3 * supervisor.LOG_BYTES // 1000
    launcher = yard.launcher(server(f"for i in range({lines}): print('x' * 999)\nprint('the end')"))
    await launcher.start(order())
    await asyncio.wait_for(launcher.wait(RUN), 20)
    log_bytes = sum(file.stat().st_size for file in yard.file("").glob("server.log*"))
    assert supervisor.LOG_BYTES < log_bytes <= 2 * supervisor.LOG_BYTES
    assert (await launcher.logs(RUN, tail=100)).endswith("the end\n")
    await launcher.remove(RUN)
    assert await launcher.inspect(RUN) is None
    assert not yard.file("").exists()
    assert (yard.root / "logs" / "7-1.log").read_text().endswith("the end\n")
    await launcher.stop(RUN, grace=0)
    await launcher.remove(RUN)


async def test_a_command_that_cannot_be_run_has_its_cause_in_the_log(yard: Yard) -> None:
    launcher = yard.launcher(("/nowhere/python",))
    await launcher.start(order())
    assert await asyncio.wait_for(launcher.wait(RUN), 10) == Ended(code=127)
    assert "cannot be started" in await launcher.logs(RUN, tail=1000)


async def test_a_warden_that_cannot_begin_is_an_error_that_names_the_folder(yard: Yard) -> None:
    launcher = yard.launcher(SLEEPER)
    yard.file(supervisor.LOCK).mkdir(parents=True)
    with pytest.raises(LaunchFailed) as refused:
        await launcher.start(order())
    assert str(yard.file("")) in f"{refused.value.hint}/"
    assert await launcher.inspect(RUN) is None


async def test_a_home_too_deep_for_a_socket_has_its_sockets_in_a_private_folder_elsewhere(
    yard: Yard, short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short_dir))
    deep = SubprocessLauncher(yard.root / ("d" * 90), command=SLEEPER)
    socket = deep.address(RUN).socket
    assert socket is not None
    assert len(socket) <= 107
    await deep.start(order())
    await deep.stop(RUN, grace=1)
    folder = Path(socket).parent.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    with pytest.raises(LaunchFailed, match="private folder"):
        await deep.start(order(Handle(instance_id=7, launch=2)))
