"""How much memory a process has, and what it may have beyond that.

Programs that reserve terabytes of addresses and use little of them (embedded graph databases do)
cannot be limited by addresses. What they allocate after that is new private memory, and
`RLIMIT_DATA` set then counts exactly that: an allocation too many fails for whoever asked for it,
and takes nothing from anybody else.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_OWN_STATUS = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
"""Opened now: an engine process that is confined cannot open it any more."""
_libc = ctypes.CDLL(None)


def data_bytes(pid: int = 0) -> int:
    """Private writable memory that a process (0: this one) has mapped, touched or not."""
    text = Path(f"/proc/{pid}/status").read_bytes() if pid else os.pread(_OWN_STATUS, 16384, 0)
    lines = (line.split() for line in text.splitlines())
    return next(int(line[1]) * 1024 for line in lines if line[0] == b"VmData:")


def held_bytes(pid: int) -> int:
    """Memory that a process has touched, without files; 0 when it is gone."""
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_bytes().split()[1:3]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(resident) - int(shared)) * _PAGE


def exact_bytes(pid: int) -> int:
    """The same with a page that several processes share counted once; the kernel walks all pages
    for it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return held_bytes(pid)
    anonymous = (int(line.split()[1]) for line in lines if line.startswith(b"Pss_Anon:"))
    return next(anonymous, 0) * 1024


def limit(most: int | None, *, pid: int = 0) -> None:
    """Let a process (0: this one) map so much private memory in all; None lifts the limit."""
    bound = resource.RLIM_INFINITY if most is None else most
    resource.prlimit(pid, resource.RLIMIT_DATA, (bound, resource.RLIM_INFINITY))


def left_bytes() -> int | None:
    """What this process may still map; None without a limit."""
    bound, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return None if bound == resource.RLIM_INFINITY else max(0, bound - data_bytes())


def give_back() -> None:
    """Return to the kernel what was freed."""
    gc.collect()
    _libc.malloc_trim(0)
