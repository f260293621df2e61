"""Landlock, by its three system calls: a thread gives up, for good, every file and port that it
does not name.

What a thread has given up, the threads and processes it starts lack from their first moment, and
nothing gives it back.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_BIND_TCP, _CONNECT_TCP = 1, 2
TCP_SINCE, SCOPES_SINCE = 4, 6
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

READ = _READ_FILE | _READ_DIR
RUN = READ | _EXECUTE


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Port(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """What the kernel speaks; 0 when it has no Landlock, or has it switched off."""
    spoken: int = _libc.syscall(
        _CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)
    )
    return max(0, spoken)


def confine(
    *,
    read: Iterable[Path],
    run: Iterable[Path] = (),
    write: Iterable[Path] = (),
    ports: Iterable[int] | None = (),
) -> None:
    """Leave this thread these files and folders and connections to these TCP ports (None: to all).

    Signals and abstract sockets reach only what this thread starts from now on.
    """
    spoken = version()
    everything = _ALL_BY_VERSION[max(v for v in _ALL_BY_VERSION if v <= spoken)]
    net = _BIND_TCP | _CONNECT_TCP if spoken >= TCP_SINCE and ports is not None else 0
    scoped = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if spoken >= SCOPES_SINCE else 0
    rules = _Ruleset(fs=everything, net=net, scoped=scoped)
    size = 24 if spoken >= SCOPES_SINCE else 16 if spoken >= TCP_SINCE else 8
    ruleset = _call(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for paths, rights in ((read, READ), (run, RUN), (write, everything & ~_EXECUTE)):
            for path in paths:
                _allow(ruleset, path, rights & everything)
        for port in ports or () if net else ():
            _add(ruleset, _NET_PORT, _Port(allowed=_CONNECT_TCP, port=port))
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
        allowed = rights if path.is_dir() else rights & _FOR_FILES
        _add(ruleset, _PATH_BENEATH, _Beneath(allowed=allowed, parent=parent))
    finally:
        os.close(parent)


def _add(ruleset: int, kind: int, rule: ctypes.Structure) -> None:
    _call(
        _ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(kind), ctypes.byref(rule), ctypes.c_uint32(0)
    )


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {errno.errorcode.get(code, code)}")
    return result
