"""Starting PostgreSQL's programs as another account, out of reach of the terminal's signals."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, Signals
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from penstock.kit.postgres.account import Account

_LAUNCH = Path(__file__).with_name("launch.py")
_KEPT = ("PATH", "LD_LIBRARY_PATH")


async def run(
    account: Account, command: list[str], *, cwd: Path, keep: int, feed: bytes | None = None
) -> tuple[int, str]:
    """The exit code and the output of the program, whose input is `feed`.

    It does not outlive the call, nor us.
    """
    pipe = asyncio.subprocess.PIPE
    stdin = asyncio.subprocess.DEVNULL if feed is None else pipe
    child = await spawn(
        account, command, cwd=cwd, keep=keep, on_our_death=SIGKILL, output=pipe, stdin=stdin
    )
    try:
        output, _ = await child.communicate(feed)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, SIGKILL)
        await child.wait()
        raise
    return await child.wait(), output.decode(errors="replace")


async def spawn(
    account: Account,
    command: list[str],
    *,
    cwd: Path,
    keep: int,
    on_our_death: Signals,
    output: IO[bytes] | int,
    stdin: int = asyncio.subprocess.DEVNULL,
) -> Process:
    """A child that holds on to the descriptor `keep`, leads its own session, and gets the signal
    when we die."""
    who = (account.uid, account.gid, os.getpid(), int(on_our_death))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        _LAUNCH,
        *map(str, who),
        *command,
        cwd=cwd,
        env=_environment(),
        stdin=stdin,
        stdout=output,
        stderr=asyncio.subprocess.STDOUT,
        pass_fds=(keep,),
        start_new_session=True,
    )


def _environment() -> dict[str, str]:
    """Nothing of ours leaks into the server, and its messages come in the language that `failure`
    reads."""
    return {"LC_ALL": "C", **{name: os.environ[name] for name in _KEPT if name in os.environ}}
