"""Where a cluster's files lie, and that the server's account can get there.

    <folder>/             0700, the account's
      data/               what initdb made; it appears whole, by a rename
      socket/             0700
      pgpass              0600: the password, without which nobody may connect
      lock  postgres.log

As root the account is somebody else, who cannot walk through a private home. Nobody's home is
opened for that: the folder is made under a shared root and a symbolic link is left where it was
wanted.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kit.postgres import account as accounts
from penstock.kit.postgres import failure
from penstock.kit.postgres.errors import PostgresFailed

if TYPE_CHECKING:
    from penstock.kit.postgres.account import Account

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
    def password(self) -> Path:
        return self.folder / "pgpass"

    @property
    def rules(self) -> Path:
        """Who may connect, and how they show who they are."""
        return self.data / "pg_hba.conf"

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    @property
    def sockets(self) -> Path:
        """Beside the data, unless a socket's address cannot hold that path; a comma would be read
        as two hosts."""
        beside = self.folder / "socket"
        if len(os.fsencode(beside)) <= _SOCKET_LIMIT and "," not in str(beside):
            return beside
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path(f"/tmp/penstock-{self.account.uid}-{digest}")  # noqa: S108 - claim() checks whose it is


def settle(requested: Path, shared: Path) -> Places:
    """Make the cluster's folder, or find where an earlier start put it."""
    requested = requested.expanduser().absolute()
    with failure.explained(requested):
        requested.parent.mkdir(parents=True, exist_ok=True)
        account = accounts.for_folder(requested)
        folder = _within_reach(requested, account, shared)
        claim(folder, account)
    return Places(folder=folder, account=account)


def claim(folder: Path, account: Account) -> None:
    """Make the folder 0700 and the account's; one that is there already must not be anybody else's.

    By descriptor, because as root we walk where another account may put links in our way.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileExistsError, NotADirectoryError):
        raise _foreign(folder, account) from None
    try:
        if os.fstat(fd).st_uid == 0 and not os.listdir(fd):  # noqa: PTH208 - the one that is open, not the one named so
            account.own(fd)
        if os.fstat(fd).st_uid != account.uid:
            raise _foreign(folder, account)
        os.fchmod(fd, 0o700)
    finally:
        os.close(fd)


def _foreign(folder: Path, account: Account) -> PostgresFailed:
    return PostgresFailed(
        f"{folder} does not belong to {account.name}, who runs the server.",
        hint="Set another PENSTOCK_HOME.",
    )


def open_own(path: str, flags: int) -> int:
    """An opener for files in the account's folder: 0600, and never through a link."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def written_by(data_dir: Path) -> str | None:
    """The major version whose data a cluster's folder holds; None before its first start."""
    try:
        return (data_dir.expanduser() / "data" / "PG_VERSION").read_text().strip()
    except OSError:
        return None


def _within_reach(requested: Path, account: Account, shared: Path) -> Path:
    if requested.is_symlink() and not requested.exists():
        raise PostgresFailed(
            f"{requested} points to {requested.readlink()}, which is gone.",
            hint=f"Bring it back, or begin anew: rm {requested}",
        )
    if account.reaches(requested):
        return requested.resolve()
    if requested.exists():
        _remove_empty(requested, account)
    open_shared(shared)
    folder = Path(
        tempfile.mkdtemp(
            prefix=f"{requested.parent.name.lstrip('.')}-{requested.name}-", dir=shared
        )
    ).resolve()
    requested.symlink_to(folder)
    return folder


def open_shared(shared: Path) -> None:
    """A folder of root's that everybody may walk through, whatever the umask."""
    if not shared.exists():
        shared.mkdir(parents=True)
        shared.chmod(0o755)


def _remove_empty(folder: Path, account: Account) -> None:
    try:
        folder.rmdir()
    except OSError as e:
        raise PostgresFailed(
            f"The server runs as {account.name}, who cannot reach {folder}.",
            hint="Move it to a place that everybody may walk to, or set another PENSTOCK_HOME.",
        ) from e
