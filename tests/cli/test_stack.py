from __future__ import annotations

import json
import os
import re
import socket
import time
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli


def until(check: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


def supervisor(cli: Cli) -> int:
    pid: int = json.loads((cli.home / "run" / "up.json").read_text())["pid"]
    return pid


def test_up_makes_everything_answer_and_doctor_finds_nothing_missing(up: Cli) -> None:
    result = up("doctor", "--json")
    assert result.code == 0, result.out
    assert {f["what"] for f in result.json} >= {
        "postgres",
        "control plane",
        "a job",
        "disk",
        "isolation",
    }
    status = up("status", "--json").json
    assert status["ready"]
    assert len(status["workers"]) == 1


def test_no_process_of_up_has_a_secret_in_its_environment_or_command_line(up: Cli) -> None:
    family = psutil.Process(supervisor(up)).children(recursive=True)
    secrets = [file.read_bytes() for file in (up.home / "secrets").iterdir()]
    secrets.append((up.home / "postgres" / "pgpass").read_bytes().strip().rpartition(b":")[2])
    assert len(secrets) >= 3
    assert len(family) >= 3
    for process in family:
        shown = [
            Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("environ", "cmdline")
        ]
        assert not [secret for secret in secrets for text in shown if secret in text], (
            process.cmdline()
        )


def test_a_second_up_on_the_same_home_says_who_holds_it(up: Cli) -> None:
    again = up("up", "--port", "0")
    assert again.code == 4
    assert f"process {supervisor(up)}" in again.err
    assert "penstock down" in again.err


def test_a_worker_that_is_killed_is_started_again(up: Cli) -> None:
    before = _workers(supervisor(up))
    os.kill(before[0], SIGKILL)
    until(lambda: bool(now := _workers(supervisor(up))) and now != before)
    assert up("doctor").code == 0


def test_a_postgresql_that_is_killed_is_started_again_with_all_it_held(up: Cli) -> None:
    assert up("doctor").code == 0
    jobs = up("job", "list", "--kind", "probe", "--json").json["data"]
    assert jobs
    before = _postgres(supervisor(up))
    os.kill(before[0], SIGKILL)
    until(lambda: bool(now := _postgres(supervisor(up))) and now != before)
    until(lambda: up("doctor").code == 0)
    ids = {job["id"] for job in up("job", "list", "--kind", "probe", "--json").json["data"]}
    assert {job["id"] for job in jobs} <= ids


def test_jobs_outlive_a_restart(cli: Cli) -> None:
    assert cli("up", "--detach", "--port", "0").code == 0
    assert cli("doctor").code == 0
    jobs = cli("job", "list", "--kind", "probe", "--json").json["data"]
    assert cli("down").code == 0
    assert cli("up", "--detach", "--port", "0").code == 0
    try:
        after_restart = cli("job", "list", "--kind", "probe", "--json").json["data"]
        assert [j["id"] for j in after_restart] == [j["id"] for j in jobs]
        assert jobs
    finally:
        cli("down")


def test_after_kill_9_of_the_supervisor_nothing_is_left_running_and_the_next_up_recovers(
    cli: Cli,
) -> None:
    assert cli("up", "--detach", "--port", "0").code == 0
    assert cli("doctor").code == 0
    pid = supervisor(cli)
    children = psutil.Process(pid).children(recursive=True)
    os.kill(pid, SIGKILL)
    until(lambda: not any(_lives(child) for child in children))
    assert cli("status").code == 5
    assert cli("up", "--detach", "--port", "0").code == 0
    try:
        assert (
            len(
                cli("job", "list", "--kind", "probe", "--status", "succeeded", "--json").json[
                    "data"
                ]
            )
            == 1
        )
    finally:
        assert cli("down").code == 0


def test_a_port_that_is_in_use_is_named(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = cli("up", "--port", str(port))
    assert refused.code == 4
    assert f"Port {port} is in use" in refused.err
    assert f"--port {port + 1}" in refused.err


def test_down_without_up_is_no_fault(cli: Cli) -> None:
    stopped = cli("down")
    assert stopped.code == 0
    assert "Nothing runs here" in stopped.out


def test_secrets_are_readable_by_their_owner_alone_and_on_no_command_line(up: Cli) -> None:
    files = list((up.home / "secrets").iterdir())
    assert files
    assert all(f.stat().st_mode & 0o077 == 0 for f in files)
    words = [f.read_text().strip() for f in files]
    lines = [
        " ".join(p.cmdline())
        for p in psutil.Process(supervisor(up)).children(recursive=True)
        if _lives(p)
    ]
    assert not [line for line in lines for word in words if word in line]


def _workers(pid: int) -> list[int]:
    processes = (p for p in psutil.Process(pid).children() if _lives(p))
    return [p.pid for p in processes if re.search(r"penstock\.cli worker", " ".join(p.cmdline()))]


def _postgres(pid: int) -> list[int]:
    return [p.pid for p in psutil.Process(pid).children() if _lives(p) and "postgres" in p.name()]


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
