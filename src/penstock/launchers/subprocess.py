"""Launcher that runs graph servers as processes of this machine, each with a private folder, a
socket and a supervisor process.

The control plane is not their parent: it starts supervisors, finds them by their folders, and
refers to them by pidfd. So it may be killed and restarted, and still knows every running server and
how the others ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.launchers import supervisor
from penstock.launchers.contract import Address, Capabilities, Ended, Found, Usage
from penstock.launchers.errors import LaunchFailed
from penstock.launchers.folders import RunFolders

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.launchers.contract import Handle, LaunchRequest
    from penstock.launchers.folders import Folder

log = logging.get(__name__)
COMMAND = (sys.executable, "-I", "-m", "penstock.graph_server")
KEPT_LOGS = 100
UNATTENDED_SECONDS = 3600.0
"""How long a server runs on without a control plane."""
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
_KILL_SECONDS = 5.0


class SubprocessLauncher:
    def __init__(
        self,
        root: Path,
        *,
        command: Sequence[str] = COMMAND,
        unattended_seconds: float = UNATTENDED_SECONDS,
    ) -> None:
        self._folders = RunFolders(root)
        self._command = command
        self._unattended = unattended_seconds

    @property
    def place(self) -> str:
        return f"subprocess:{self._folders.name()}"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(resume=True, resize=True)

    async def start(self, order: LaunchRequest) -> None:
        if self._folders.of(order.handle).begun:
            return
        secrets = _secrets(order)
        folder = self._folders.make(order.handle)
        self._limit(folder, order.cpu_cores, order.memory_bytes)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", supervisor.__file__, str(folder.path), *self._command),
            env=self._environment(order, folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await process.communicate(secrets)
        if output != b"+":
            raise LaunchFailed(
                f"The graph server of instance {order.handle.instance_id} could not be started.",
                hint=f"See warden.log in {folder.path}.",
            )
        log.info(
            "graph_server_launched",
            instance_id=order.handle.instance_id,
            launch=order.handle.launch,
        )

    async def stop(self, handle: Handle, *, grace: float) -> None:
        with self._folders.of(handle).supervisor_process() as process_:
            if process_ is None:
                return
            for number, patience in ((signal.SIGTERM, grace), (signal.SIGQUIT, _KILL_SECONDS)):
                process_.signal(number)
                if await process_.over(patience):
                    return
            process_.signal(signal.SIGKILL)
            await process_.over(_KILL_SECONDS)

    async def remove(self, handle: Handle) -> None:
        await asyncio.to_thread(self._remove, self._folders.of(handle))

    async def inspect(self, handle: Handle) -> Found | None:
        folder = self._folders.of(handle)
        return _found(folder) if folder.begun else None

    async def list(self) -> Sequence[Found]:
        return await asyncio.to_thread(lambda: [_found(folder) for folder in self._folders.all()])

    async def wait(self, handle: Handle) -> Ended:
        folder = self._folders.of(handle)
        with folder.supervisor_process() as process_:
            if process_ is not None:
                await process_.over()
        return folder.ended()

    async def usage(self, handle: Handle) -> Usage | None:
        return await asyncio.to_thread(_usage, self._folders.of(handle))

    async def logs(self, handle: Handle, *, tail: int) -> str:
        return await asyncio.to_thread(_tail, self._folders.of(handle).log, tail)

    async def resize(self, handle: Handle, *, cpu_cores: int, memory_bytes: int) -> None:
        folder = self._folders.of(handle)
        if folder.begun:
            self._limit(folder, cpu_cores, memory_bytes)

    async def attend(self) -> None:
        self._folders.attend()

    def address(self, handle: Handle) -> Address:
        return Address(url="http://instance", socket=str(self._folders.socket(handle)))

    def pod_name(self, handle: Handle) -> str | None:  # noqa: ARG002 - there are no pods here
        return None

    def _limit(self, folder: Folder, cpu_cores: int, memory_bytes: int) -> None:
        folder.limit(
            cpu_cores=cpu_cores, memory_bytes=memory_bytes, unattended_seconds=self._unattended
        )

    def _environment(self, order: LaunchRequest, folder: Folder) -> dict[str, str]:
        """Only what a server needs: no database URL, no keys, no operator token."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        own = {
            "HOME": str(folder.data),
            "TMPDIR": str(folder.path / "tmp"),
            "PENSTOCK_INSTANCE_ID": str(order.handle.instance_id),
            "PENSTOCK_INSTANCE_SECRETS_FD": "0",
            "PENSTOCK_INSTANCE_BACKEND": order.backend,
            "PENSTOCK_INSTANCE_DIR": str(folder.data),
            "PENSTOCK_INSTANCE_SOCKET": str(self._folders.socket(order.handle)),
            "PENSTOCK_INSTANCE_MEMORY_BYTES": str(order.memory_bytes),
            "PENSTOCK_INSTANCE_CPU": str(order.cpu_cores),
            "PENSTOCK_URL": order.control_plane_url,
        }
        return inherited | dict(order.environment) | own

    def _remove(self, folder: Folder) -> None:
        self._keep_log(folder)
        shutil.rmtree(folder.path, ignore_errors=True)
        shutil.rmtree(self._folders.socket(folder.handle).parent, ignore_errors=True)
        with suppress(OSError):
            folder.path.parent.rmdir()

    def _keep_log(self, folder: Folder) -> None:
        logs = self._folders.root / "logs"
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            folder.log.replace(logs / f"{folder.handle.instance_id}-{folder.handle.launch}.log")
        newest_first = sorted(logs.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in newest_first[KEPT_LOGS:]:
            file.unlink(missing_ok=True)


def _secrets(order: LaunchRequest) -> bytes:
    """The secrets that the server reads from its standard input, once."""
    content = json.dumps({"PENSTOCK_INSTANCE_TOKEN": order.token, **order.secrets}).encode()
    if len(content) > supervisor.SECRET_BYTES:
        raise LaunchFailed(
            f"The secrets of a graph server have {len(content)} bytes;"
            f" the maximum is {supervisor.SECRET_BYTES}.",
            hint="Check PENSTOCK_STORAGE_SECRET_ACCESS_KEY and PENSTOCK_INSTANCE_FALKORDB_URL.",
        )
    return content


def of_home(home: Path) -> SubprocessLauncher:
    """The launcher of a home folder."""
    return SubprocessLauncher(home / "instances")


def _found(folder: Folder) -> Found:
    with folder.supervisor_process() as process_:
        return Found(handle=folder.handle, ended=folder.ended() if process_ is None else None)


def _usage(folder: Folder) -> Usage | None:
    with folder.supervisor_process() as process_:
        child = folder.child
        if process_ is None or child is None:
            return None
        disk = sum(_size(file) for file in folder.path.rglob("*"))
        return Usage(memory_bytes=supervisor.memory_of(supervisor.family(child)), disk_bytes=disk)


def _size(file: Path) -> int:
    try:
        status = file.lstat()
    except FileNotFoundError:
        return 0
    return status.st_blocks * 512


def _tail(file: Path, size: int) -> str:
    try:
        with file.open("rb") as handle:
            handle.seek(max(0, handle.seek(0, os.SEEK_END) - size))
            return handle.read(size).decode(errors="replace")
    except FileNotFoundError:
        return ""
