"""CPU time of processes, from the kernel's accounts. Standard library only: peers' environments
import it too."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TICKS = os.sysconf("SC_CLK_TCK")


def of_tree(pid: int) -> float:
    """Seconds of a process, of those below it, and of those that ended below it."""
    return sum(_of_one(pid) for pid in (pid, *_below(pid)))


def of_process(pid: int) -> float:
    """Seconds of one process with all its threads, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | 2)


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS:"))


def _of_one(pid: int) -> float:
    """0 for one that has just ended: its parent has its time by then."""
    try:
        own = of_process(pid)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return own + (int(fields[13]) + int(fields[14])) / _TICKS


def _below(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield int(child)
                yield from _below(int(child))
