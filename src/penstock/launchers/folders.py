"""Folders and sockets of runs."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.launchers import process, supervisor
from penstock.launchers.contract import Ended, Handle
from penstock.launchers.errors import LaunchFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_SOCKET = 100
"""A Unix socket path has at most 107 bytes; the rest is for the name within the folder."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one run."""

    path: Path
    handle: Handle

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def log(self) -> Path:
        return self.path / supervisor.LOG

    @property
    def begun(self) -> bool:
        return (self.path / supervisor.PROCESS).exists()

    @property
    def child(self) -> int | None:
        record = _read(self.path / supervisor.PROCESS)
        return None if record is None else int(record["child"])

    @contextmanager
    def supervisor_process(self) -> Iterator[process.Process | None]:
        """The supervisor process of the run; None if it has ended."""
        record = _read(self.path / supervisor.PROCESS)
        if record is None or record["boot"] != supervisor.boot_id():
            yield None
            return
        with process.open_process(record["pid"], record["start"]) as supervisor_process:
            yield supervisor_process

    def ended(self) -> Ended:
        record = _read(self.path / supervisor.EXIT)
        return Ended() if record is None else Ended(code=record["code"], oom=record["oom"])

    def limit(self, *, cpu_cores: int, memory_bytes: int, unattended_seconds: float) -> None:
        limits = {
            "cpus": _cpus(self.handle.instance_id, cpu_cores),
            "memory_bytes": memory_bytes,
            "unattended_seconds": unattended_seconds,
        }
        supervisor.write(self.path / supervisor.LIMITS, limits)


@dataclass(frozen=True, slots=True)
class RunFolders:
    """The folders of all runs below one root."""

    root: Path

    def name(self) -> str:
        """A persistent random name of this place: host names may change."""
        file = self.root / "place"
        if not file.exists():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self.root / f"place.{os.getpid()}"
            draft.write_text(secrets.token_hex(8))
            with suppress(FileExistsError):
                os.link(draft, file)
            draft.unlink()
        return file.read_text()

    def attend(self) -> None:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.root / supervisor.ATTENDED).touch()

    def of(self, handle: Handle) -> Folder:
        return Folder(self.root / str(handle.instance_id) / str(handle.launch), handle)

    def all(self) -> list[Folder]:
        files = self.root.glob(f"[0-9]*/[0-9]*/{supervisor.PROCESS}")
        return [
            self.of(Handle(instance_id=int(f.parent.parent.name), launch=int(f.parent.name)))
            for f in files
        ]

    def make(self, handle: Handle) -> Folder:
        folder = self.of(handle)
        for directory in (
            self.root,
            folder.path.parent,
            folder.path,
            folder.data,
            folder.path / "tmp",
        ):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(self._sockets)
        _make_private(self.socket(handle).parent)
        return folder

    def socket(self, handle: Handle) -> Path:
        """In its own folder, so that a confined server cannot reach the socket of another."""
        return self._sockets / f"{handle.instance_id}-{handle.launch}" / "s"

    @property
    def _sockets(self) -> Path:
        near = self.root / "sockets"
        if len(os.fsencode(near)) <= _LONGEST_SOCKET - 25:
            return near
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}-{digest}"


def _make_private(folder: Path) -> None:
    """Create a private folder, and refuse one that another user created in the temporary folder."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise LaunchFailed(
            f"{folder} is not a private folder of this user.",
            hint="Remove it, or set PENSTOCK_HOME.",
        )


def _cpus(instance_id: int, cores: int) -> list[int]:
    """Cores for a run; instances start at different cores to spread the load."""
    allowed = sorted(os.sched_getaffinity(0))
    return sorted(
        allowed[(instance_id + i) % len(allowed)] for i in range(min(cores, len(allowed)))
    )


def _read(file: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    return document
