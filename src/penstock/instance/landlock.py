"""Landlock, by its three system calls: a thread gives up, for good, every file and port that it does not name.

What a thread has given up, the threads and processes it starts lack from their first moment, and nothing gives it back.
Called `python -I -S landlock.py REACH COMMAND…`, it becomes that command, confined: REACH is JSON with the paths to
`read`, `run` and `write` (none of them: not confined) and the `parent` that the command dies with. So this module
imports nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38
_SET_PDEATHSIG = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP = 3
_TCP_SINCE, _SCOPES_SINCE = 4, 6
_SCOPE_ABSTRACT_SOCKETS = 1

READ = _READ_FILE | _READ_DIR
RUN = READ | _EXECUTE


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """What the kernel speaks; 0 when it has no Landlock, or has it switched off."""
    found: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(0, found)


def confine(*, read: Iterable[Path], run: Iterable[Path] = (), write: Iterable[Path] = (), connect: bool) -> None:
    """Leave this thread nothing but these files and folders and, unless `connect`, no TCP port."""
    spoken = version()
    everything = _ALL_BY_VERSION[max(v for v in _ALL_BY_VERSION if v <= spoken)]
    net = _TCP if spoken >= _TCP_SINCE and not connect else 0
    scoped = _SCOPE_ABSTRACT_SOCKETS if spoken >= _SCOPES_SINCE and not connect else 0
    wanted = _Ruleset(fs=everything, net=net, scoped=scoped)
    size = 24 if spoken >= _SCOPES_SINCE else 16 if spoken >= _TCP_SINCE else 8
    ruleset = _call(_CREATE_RULESET, ctypes.byref(wanted), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for paths, rights in ((read, READ), (run, RUN), (write, everything & ~_EXECUTE)):
            for path in paths:
                _allow(ruleset, path, rights & everything)
        if _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rule = _Beneath(allowed=rights if path.is_dir() else rights & _FOR_FILES, parent=parent)
        _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(parent)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {errno.errorcode.get(code, code)}")
    return result


def main() -> None:
    reach = json.loads(sys.argv[1])
    _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != reach["parent"]:
        return
    if "write" in reach:
        read, run, write = (list(map(Path, reach[name])) for name in ("read", "run", "write"))
        confine(read=read, run=run, write=write, connect=False)
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
