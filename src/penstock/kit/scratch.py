"""Scratch folders: they are removed when their work is done, and swept when their process died
before that.

Each has a marker file on which its process holds a lock (`flock`) for as long as it lives. The
kernel drops the lock with the process, however that ends, so whoever can take it knows that the
owner is gone. No process number is compared: it may have been given to another process since, and
in another container it means nothing; a lock on a file in a shared folder does. A folder without a
marker is not ours to judge and is left alone, and so is one of another user.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import tempfile
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.get(__name__)
PREFIX = "penstock-"
MARKER = ".penstock-owner"
_FRESH = f"{MARKER}.new"


class Scratch:
    """A folder of this process; `remove` may be called more than once."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock: int | None = lock

    @classmethod
    def create(cls, purpose: str, *, within: Path | None = None) -> Scratch:
        """A new folder named after its purpose, in the temporary folder (`TMPDIR`) unless another
        is named."""
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", dir=within))
        lock = -1
        try:
            lock = os.open(path / _FRESH, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            # Under its name the marker is locked from its first moment: nobody can find it free.
            (path / _FRESH).rename(path / MARKER)
        except BaseException:
            if lock >= 0:
                os.close(lock)
            shutil.rmtree(path, ignore_errors=True)
            raise
        return cls(path, lock)

    def remove(self) -> None:
        lock, self._lock = self._lock, None
        if lock is None:
            return
        try:
            _remove(self.path)
        except OSError as e:
            log.warning("scratch_not_removed", folder=str(self.path), error=str(e))
        finally:
            os.close(lock)


@contextmanager
def scratch_folder(purpose: str, *, within: Path | None = None) -> Iterator[Path]:
    scratch = Scratch.create(purpose, within=within)
    try:
        yield scratch.path
    finally:
        scratch.remove()


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """Folders that were removed, because their process is gone."""

    removed: tuple[Path, ...] = ()

    @property
    def total(self) -> int:
        return len(self.removed)


def sweep(folder: Path | None = None) -> Swept:
    """Remove the scratch folders of processes that died. Any number of processes may sweep at
    once."""
    root = Path(tempfile.gettempdir()) if folder is None else folder
    removed = tuple(path for path in _candidates(root) if _sweep_one(path))
    if removed:
        log.info("scratch_swept", folders=[path.name for path in removed])
    return Swept(removed=removed)


def sweep_in_background() -> threading.Thread:
    """For the start of a process, which has better things to do than to wait for old files to
    go."""
    thread = threading.Thread(target=sweep, name="penstock-sweep", daemon=True)
    thread.start()
    return thread


def _candidates(root: Path) -> list[Path]:
    """Folders of this user that have our name."""
    try:
        with os.scandir(root) as entries:
            return [Path(e.path) for e in entries if e.name.startswith(PREFIX) and _is_mine(e)]
    except OSError as e:
        log.warning("scratch_not_swept", folder=str(root), error=str(e))
        return []


def _is_mine(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):  # it went away meanwhile
        return (
            entry.is_dir(follow_symlinks=False)
            and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        )
    return False


def _sweep_one(path: Path) -> bool:
    try:
        lock = os.open(path / MARKER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False  # no marker: not a scratch folder, or one in creation or removal
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    except OSError as e:
        if e.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
            log.warning("scratch_not_removed", folder=str(path), error=str(e))
        return False
    finally:
        os.close(lock)
    return True


def _remove(path: Path) -> None:
    """The marker last: whoever is interrupted leaves a folder that the next one sweeps."""
    with os.scandir(path) as entries:
        inside = [entry for entry in entries if entry.name != MARKER]
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()
    (path / MARKER).unlink(missing_ok=True)
    path.rmdir()
