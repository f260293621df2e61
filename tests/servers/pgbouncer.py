"""Debian's PgBouncer in transaction mode: from the system or `.cache/pgbouncer`."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kit.postgres.password import read_password
from penstock.kit.postgres.settings import SUPERUSER
from tests.servers import debian
from tests.servers.parts import LOCAL, Part, alone
from tests.servers.process import free_ports, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import Popen

    from penstock.kit.postgres import Cluster

CACHE = LOCAL / "pgbouncer"
BINARY = CACHE / "root/usr/sbin/pgbouncer"
READY_SECONDS = 60
SERVER_CONNECTIONS = 4
"""Fewer than its clients have, so that sessions are really shared."""


@contextmanager
def pooler(cluster: Cluster) -> Iterator[Callable[[str], str]]:
    """Its address for a database of the cluster."""
    PART.require()
    [own_port] = free_ports(1)
    folder = Path(tempfile.mkdtemp(prefix="penstock-pgbouncer-"))
    folder.chmod(0o755)
    settings = folder / "pgbouncer.ini"
    password = read_password(cluster.places)
    settings.write_text(
        f"""
[databases]
* = host={cluster.places.sockets} port={cluster.settings.port} user={SUPERUSER} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {SERVER_CONNECTIONS}
max_client_conn = 500
"""
    )
    command = [*_command(cluster.places.account.uid), str(settings)]
    environment = {} if shutil.which("pgbouncer") else {"LD_LIBRARY_PATH": _libraries()}
    try:
        with running(command, log=folder / "log", cwd=folder, env=environment) as process:
            _await_port(process, own_port, folder / "log")
            yield lambda database: f"postgresql://{SUPERUSER}@127.0.0.1:{own_port}/{database}"
    finally:
        shutil.rmtree(folder)


def _await_port(process: Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError(f"PgBouncer does not listen: {log.read_text()}")


def _command(account: int) -> list[str]:
    """It refuses to run as root, and only the server's account may use the server's socket."""
    binary = shutil.which("pgbouncer") or str(BINARY)
    return [binary, "-u", pwd.getpwuid(account).pw_name] if os.geteuid() == 0 else [binary]


def _libraries() -> str:
    return ":".join(sorted({str(file.parent) for file in (CACHE / "root").rglob("*.so*")}))


def _present() -> bool:
    return shutil.which("pgbouncer") is not None or (CACHE / "unpacked").exists()


def _fetch() -> None:
    with alone(CACHE):
        debian.unpack(["pgbouncer"], CACHE)
        (CACHE / "unpacked").touch()


PART = Part(name="PgBouncer", present=_present, fetch=_fetch)
