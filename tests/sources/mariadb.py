"""A real MariaDB or MySQL of this test process, in a private folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pymysql
import pytest

from tests.servers import debian
from tests.servers.parts import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

_ACCOUNT = "nobody"
_SCRIPTS = Path("/usr/share/mysql")
_BOOTSTRAP = (
    "CREATE DATABASE mysql;\nUSE mysql;\n"
    "SET @auth_root_socket = NULL;\nSET @current_hostname = 'localhost';\n"
)
_READY_SECONDS = 60
# The server alone: the package mariadb-server would also bring a system service.
_PACKAGE = "mariadb-server-core"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    socket: str
    port: int

    def admin(self, database: str | None = None) -> pymysql.Connection:
        return pymysql.connect(
            unix_socket=self.socket,
            user="root",
            database=database,
            autocommit=True,
            charset="utf8mb4",
            init_command="SET time_zone = '+00:00'",
        )


@contextmanager
def running(folder: Path, port: int) -> Iterator[Server]:
    PART.require()
    binary = str(_find())
    folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=folder))
    data = folder / "data"
    data.mkdir()
    if os.getuid() == 0:
        shutil.chown(folder, _ACCOUNT)
        shutil.chown(data, _ACCOUNT)
    _initialise(binary, data)
    door = str(folder / "s")
    options = [
        f"--socket={door}",
        f"--port={port}",
        f"--pid-file={folder / 'pid'}",
        "--innodb-flush-log-at-trx-commit=0",
    ]
    options += ["--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-buffer-pool-size=128M"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [*_as_account(), binary, "--no-defaults", f"--datadir={data}", *options],
            stdout=log,
            stderr=log,
        ) as server,
    ):
        try:
            _await_answer(Server(socket=door, port=port), server, folder / "log")
            yield Server(socket=door, port=port)
        finally:
            server.kill()


def _find() -> str | None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    return shutil.which("mariadbd", path=path) or shutil.which("mysqld", path=path)


PART = Part(
    name="MariaDB", present=lambda: _find() is not None, fetch=lambda: debian.install(_PACKAGE)
)


def _initialise(binary: str, data: Path) -> None:
    version = subprocess.run(
        [binary, "--version"], capture_output=True, text=True, check=True
    ).stdout
    command = [*_as_account(), binary, "--no-defaults", f"--datadir={data}"]
    if "MariaDB" not in version:
        subprocess.run([*command, "--initialize-insecure"], capture_output=True, check=True)
        return
    files = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
    script = _BOOTSTRAP + "".join((_SCRIPTS / name).read_text() for name in files)
    subprocess.run(
        [*command, "--bootstrap"], input=script.encode(), capture_output=True, check=True
    )


def _as_account() -> list[str]:
    """A server refuses to run as root; and it shall not outlive us."""
    dying = ["setpriv", "--pdeathsig", "KILL"]
    return (
        [*dying, f"--reuid={_ACCOUNT}", "--clear-groups", "--"]
        if os.getuid() == 0
        else [*dying, "--"]
    )


def _await_answer(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not _listens(server.socket):
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"the server did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.05)


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0
