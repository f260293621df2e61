"""Child processes of ours: out of reach of the terminal's signals, and gone when we are, however we
went."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from signal import SIGTERM, Signals
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping, Sequence

_LAUNCH = Path(__file__).with_name("postgres") / "launch.py"


async def spawn(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: IO[bytes] | int | None,
    on_our_death: Signals = SIGTERM,
    inherit: Sequence[int] = (),
) -> Process:
    """Start `command` (a full path first) as our child, under our own account; `inherit` are the
    descriptors that it keeps."""
    who = (os.getuid(), os.getgid(), os.getpid(), int(on_our_death))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(_LAUNCH),
        *map(str, who),
        *command,
        env=dict(environment),
        pass_fds=tuple(inherit),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=asyncio.subprocess.STDOUT if output is not None else None,
    )
