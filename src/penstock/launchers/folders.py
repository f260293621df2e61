"""Where a run's files and socket are."""

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
"""A unix socket's path has at most 107 bytes; the name within its folder needs the rest."""


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
        known = _read(self.path / supervisor.PROCESS)
        return None if known is None else int(known["child"])

    @contextmanager
    def warden(self) -> Iterator[process.Process | None]:
        """The warden that runs it; None when there is none any more."""
        known = _read(self.path / supervisor.PROCESS)
        if known is None or known["boot"] != supervisor.boot_id():
            yield None
            return
        with process.held(known["pid"], known["start"]) as found:
            yield found

    def ended(self) -> Ended:
        known = _read(self.path / supervisor.EXIT)
        return Ended() if known is None else Ended(code=known["code"], oom=known["oom"])

    def limit(self, *, cpu_cores: int, memory_bytes: int, unattended_seconds: float) -> None:
        limits = {
            "cpus": _cpus(self.handle.instance_id, cpu_cores),
            "memory_bytes": memory_bytes,
            "unattended_seconds": unattended_seconds,
        }
        supervisor.write(self.path / supervisor.LIMITS, limits)


@dataclass(frozen=True, slots=True)
class Places:
    """Everything below one root."""

    root: Path

    def name(self) -> str:
        """A name for all that runs here, made once: a machine may be called something else
        tomorrow."""
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
        for each in (self.root, folder.path.parent, folder.path, folder.data, folder.path / "tmp"):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(self._sockets)
        _make_private(self.socket(handle).parent)
        return folder

    def socket(self, handle: Handle) -> Path:
        """In a folder of its own: a server that is confined to it reaches no other's."""
        return self._sockets / f"{handle.instance_id}-{handle.launch}" / "s"

    @property
    def _sockets(self) -> Path:
        near = self.root / "sockets"
        if len(os.fsencode(near)) <= _LONGEST_SOCKET - 25:
            return near
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}-{digest}"


def _make_private(folder: Path) -> None:
    """Ours alone; in a temporary folder somebody else may have made one of that name before us."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise LaunchFailed(
            f"{folder} is not a private folder of ours.", hint="Remove it, or set PENSTOCK_HOME."
        )


def _cpus(instance_id: int, cores: int) -> list[int]:
    """Some of the cores that we may use; neighbours begin at different ones."""
    allowed = sorted(os.sched_getaffinity(0))
    return sorted(
        allowed[(instance_id + i) % len(allowed)] for i in range(min(cores, len(allowed)))
    )


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    return found
