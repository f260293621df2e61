"""One server a cluster, and a name for whoever has it.

The lock is a `flock` whose descriptor every postgres process inherits: it is free when the
supervisor and the last backend are gone, however they died, in whatever container they ran, and no
pid has to be believed for it. The pids in the files beside it serve to tell a person who it is, and
to see through the two that mislead PostgreSQL itself, which takes an unreaped zombie or a recycled
pid in `postmaster.pid` for a server that runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psutil

from penstock.kit.postgres.paths import open_own

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.kit.postgres.paths import Places

_NO_PID = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    pid: int
    since: float
    command: str

    def __str__(self) -> str:
        return (
            f"process {self.pid} since {datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M:%S}"
            f" UTC ({self.command})"
        )


class Lock:
    """The right to run a server on one cluster."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def release(self) -> None:
        """Let go of our share, and of the name on it; a server that inherited one keeps it until it
        ends."""
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


def take(places: Places) -> Lock | None:
    """The lock, or None if somebody has it."""
    fd = open_own(str(places.lock), os.O_RDWR | os.O_CREAT)
    try:
        places.account.own(fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _note(fd)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return Lock(fd)


def is_free(places: Places) -> bool:
    if lock := take(places):
        lock.release()
    return lock is not None


def noted(places: Places) -> Holder | None:
    """Whoever took the lock last, alive or not."""
    try:
        return Holder(**json.loads(places.lock.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def supervisor(places: Places) -> Holder | None:
    """The living process that took the lock; None when it is gone and only its server may be
    left.
    """
    if (taker := noted(places)) is None:
        return None
    try:
        process = psutil.Process(taker.pid)
        return taker if _lives(process) and abs(process.create_time() - taker.since) < 1 else None
    except psutil.Error:
        return None


def postmaster(places: Places) -> Holder | None:
    """The server that runs on this data, whoever started it."""
    try:
        process = psutil.Process(int(_pid_file(places.data).read_text().split("\n", 1)[0]))
        return _of(process) if _lives(process) and _works_in(process, places.data) else None
    except (OSError, ValueError, psutil.Error):
        return None


def clear_remains(places: Places) -> None:
    """Take a dead server's files out of the next one's way; only with the lock held and no
    postmaster alive.

    The pid is replaced rather than the file removed, because the file also names the shared memory
    by which PostgreSQL recognises backends that outlived their postmaster.
    """
    for left in places.sockets.glob(".s.PGSQL.*"):
        left.unlink()
    pid_file = _pid_file(places.data)
    if not pid_file.exists():
        return
    first, newline, rest = pid_file.read_text().partition("\n")
    if not first.strip().isdigit():
        pid_file.unlink()
        return
    with open(pid_file, "w", opener=open_own) as out:
        out.write(f"{_NO_PID}{newline}{rest}")


def end_orphans(places: Places) -> None:
    """Kill what is left of a server whose postmaster is dead; such a backend has nobody to answer
    to."""
    for process in psutil.process_iter():
        try:
            if process.uids().real == places.account.uid and process.cwd() == str(places.data):
                process.kill()
        except psutil.Error:
            continue


def _note(fd: int) -> None:
    text = json.dumps(asdict(_of(psutil.Process()))).encode()
    os.pwrite(fd, text, 0)
    os.ftruncate(fd, len(text))


def _pid_file(data: Path) -> Path:
    return data / "postmaster.pid"


def _of(process: psutil.Process) -> Holder:
    with process.oneshot():
        return Holder(
            pid=process.pid,
            since=process.create_time(),
            command=shlex.join(process.cmdline())[:200],
        )


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def _works_in(process: psutil.Process, data: Path) -> bool:
    try:
        return process.cwd() == str(data)
    except psutil.AccessDenied:
        return process.name() == "postgres"
