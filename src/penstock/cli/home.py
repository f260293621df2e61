"""The home folder of a local Penstock: data, secrets, and the state of the running process."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What `penstock up` wrote down when it was ready."""

    pid: int
    url: str
    started_at: str
    database: str

    @property
    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.postgres = folder / "postgres"
        self.logs = folder / "logs"
        self._run = folder / "run"
        self._secrets = folder / "secrets"

    def make(self) -> None:
        # As root the database runs as another account, which must pass through but need not look
        # around.
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
        for folder in (self.logs, self._run, self._secrets):
            folder.mkdir(exist_ok=True, mode=0o700)

    def secret(self, name: str, make: Callable[[], str] = lambda: secrets.token_urlsafe(32)) -> str:
        """A secret of this home, made on first use and readable by its owner alone."""
        file = self.secret_file(name)
        if not file.exists():
            _write_secret(file, make())
        return file.read_text().strip()

    def secret_file(self, name: str) -> Path:
        return self._secrets / name

    def rotate_secret(self, name: str) -> None:
        """Replace the secret atomically."""
        draft = self.secret_file(f".{name}.{secrets.token_hex(4)}")
        _write_secret(draft, secrets.token_urlsafe(32))
        draft.replace(self.secret_file(name))

    def secrets_of(self, member: str) -> Path:
        """The folder of the secrets that one process of ours is started with."""
        return self._run / f"secrets-{member}"

    def hold(self) -> IO[str] | None:
        """The right to run this home, kept until the handle is closed; None when another process
        has it."""
        handle = (self._run / "lock").open("a+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            return None
        return handle

    def write_running(self, running: Running) -> None:
        draft = self._run / f"up.{running.pid}"
        draft.write_text(json.dumps(asdict(running)))
        draft.replace(self._run / "up.json")

    def forget_running(self) -> None:
        (self._run / "up.json").unlink(missing_ok=True)

    def running(self) -> Running | None:
        try:
            state = Running(**json.loads((self._run / "up.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return state if state.alive else None


def _write_secret(file: Path, secret: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(secret)


def default_home() -> Home:
    return Home(Path(os.environ.get("PENSTOCK_HOME") or Path.home() / ".penstock"))


def connect() -> Client:
    """The client that notebooks use; HTTP is loaded only now, for `--help` needs none."""
    from penstock.client import connect as to_plane

    return to_plane()
