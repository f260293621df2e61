"""Whom the server runs as. PostgreSQL refuses to be root, so root lends the work to an account that
exists already."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kit.postgres.errors import PostgresFailed

if TYPE_CHECKING:
    from pathlib import Path

_STAND_INS = ("postgres", "nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    uid: int
    gid: int

    @property
    def name(self) -> str:
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"

    def own(self, path: Path | int) -> None:
        """Give what we made to the account, never what a link points to; for a plain user it is
        theirs already."""
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid, follow_symlinks=isinstance(path, int))

    def reaches(self, path: Path) -> bool:
        """Whether the account can walk to the path, judged by the permissions of the folders above
        it."""
        return os.geteuid() != 0 or all(self._enters(folder) for folder in path.resolve().parents)

    def runs(self, program: Path) -> bool:
        return self.reaches(program) and (os.geteuid() != 0 or self._enters(program))

    def _enters(self, path: Path) -> bool:
        status = path.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        return bool(status.st_mode & (stat.S_IXGRP if status.st_gid == self.gid else stat.S_IXOTH))


def for_folder(folder: Path) -> Account:
    """Ourselves; as root, whoever owns the folder already, so that root and its owner can take
    turns."""
    if os.geteuid() != 0:
        return Account(uid=os.geteuid(), gid=os.getegid())
    if folder.exists() and (status := folder.stat()).st_uid != 0:
        return Account(uid=status.st_uid, gid=status.st_gid)
    return _stand_in()


def _stand_in() -> Account:
    for name in _STAND_INS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    raise PostgresFailed(
        "PostgreSQL does not run as root, and there is neither a user postgres nor nobody to run"
        " it as.",
        hint="Start Penstock as a plain user, or create one: useradd --system postgres",
    )
