"""Starting PostgreSQL's programs as another account, out of reach of the terminal's signals."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from signal import Signals

    from penstock.kit.postgres.account import Account

_LAUNCH = Path(__file__).with_name("launch.py")
_KEPT = ("PATH", "LD_LIBRARY_PATH")


async def run(account: Account, command: list[str], *, cwd: Path) -> tuple[int, str]:
    """The program's exit code and all that it said."""
    child = await asyncio.create_subprocess_exec(
        *_launched(account, command, None),
        cwd=cwd,
        env=_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await child.communicate()
    return await child.wait(), said.decode(errors="replace")


async def spawn(
    account: Account, command: list[str], *, cwd: Path, log: BinaryIO, keep: int, on_our_death: Signals | None
) -> Process:
    """A server that writes to the log and holds on to the descriptor `keep`."""
    return await asyncio.create_subprocess_exec(
        *_launched(account, command, on_our_death),
        cwd=cwd,
        env=_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(keep,),
    )


def _launched(account: Account, command: list[str], on_our_death: Signals | None) -> list[str]:
    lead = [sys.executable, "-I", "-S", str(_LAUNCH)]
    return [*lead, str(account.uid), str(account.gid), str(os.getpid()), str(int(on_our_death or 0)), *command]


def _environment() -> dict[str, str]:
    """Nothing of ours leaks into the server, and its messages come in the language that `failure` reads."""
    return {"LC_ALL": "C", **{name: os.environ[name] for name in _KEPT if name in os.environ}}
