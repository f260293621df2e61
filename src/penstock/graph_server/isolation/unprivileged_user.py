"""A graph server that was started as root becomes somebody with no rights, for good.

Each instance has a user number of its own, without a name: no two of them can reach each other's
processes or files, nor those of the control plane, the workers or PostgreSQL. Where Landlock bounds
what it opens, it keeps the one capability to read past permissions, because Python and the storage
may be in root's home.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Iterable

log = logging.get(__name__)
FIRST_NUMBER, NUMBERS = 61_184, 4_336
"""The range that systemd sets aside for services without a name."""
_READ_PAST_PERMISSIONS = 2
_CAPABILITIES = 64
_CAPABILITY_VERSION = 0x20080522
_SET_PDEATHSIG, _GET_PDEATHSIG, _DROP_BOUND, _SET_SECUREBITS, _AMBIENT = 1, 2, 24, 28, 47
_NO_ROOT_NO_FIXUP = 0b1111
"""Both for good: a program of root's has no capabilities by itself, and a change of the user takes
none away."""
_AMBIENT_RAISE = 2
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    number: int
    reads_everything: bool
    """Whether it keeps the capability to read past permissions."""


def number_of(instance_id: int) -> int:
    return FIRST_NUMBER + instance_id % NUMBERS


def for_instance(instance_id: int, *, bounded: bool, needed: Iterable[Path]) -> Account | None:
    """Whom to become; None for ourselves: we are not root, or no other user could start Python here
    and nothing (`bounded`) would hold the capability that helps."""
    if os.geteuid() != 0:
        return None
    number = number_of(instance_id)
    if not bounded and not all(_reaches(number, path) for path in (Path(sys.executable), *needed)):
        return None
    return Account(number=number, reads_everything=bounded)


def become(account: Account | None, *, own: Iterable[Path]) -> bool:
    """Change to the account, which gets the `own` folders; whether we are not root now.

    Root that must stay root gives up its capabilities, which is most of what root is.
    """
    if os.geteuid() != 0:
        return True
    signal = ctypes.c_int(0)
    _libc.prctl(_GET_PDEATHSIG, ctypes.byref(signal))
    parent = os.getppid()
    remaining = (
        {_READ_PAST_PERMISSIONS} if account is not None and account.reads_everything else set()
    )
    if account is not None:
        try:
            for folder in own:
                _give(folder, account.number)
            _change(account.number)
        except OSError as e:
            log.warning("user_not_changed", user=account.number, error=str(e))
            remaining = set()
    _keep_capabilities(remaining)
    # The kernel forgets the signal when the user changes.
    _libc.prctl(_SET_PDEATHSIG, signal.value)
    if signal.value and os.getppid() != parent:
        os._exit(1)
    return os.geteuid() != 0


def _change(number: int) -> None:
    # access() would judge without the capability, and libraries ask it before they open a file.
    _libc.prctl(_SET_SECUREBITS, _NO_ROOT_NO_FIXUP, 0, 0, 0)
    for capability in range(_CAPABILITIES):
        if capability != _READ_PAST_PERMISSIONS:
            _libc.prctl(_DROP_BOUND, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(number, number, number)
    os.setresuid(number, number, number)


def _keep_capabilities(remaining: set[int]) -> None:
    mask = sum(1 << capability for capability in remaining)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    sets = struct.pack("=6I", mask, mask, mask, 0, 0, 0)
    if _libc.capset(header, sets):
        code = ctypes.get_errno()
        raise OSError(code, f"capset: {os.strerror(code)}")
    for capability in remaining:
        _libc.prctl(_AMBIENT, _AMBIENT_RAISE, capability, 0, 0)


def _give(folder: Path, number: int) -> None:
    os.chown(folder, number, number, follow_symlinks=False)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(place) / name, number, number, follow_symlinks=False)


def _reaches(number: int, path: Path) -> bool:
    """Whether that user can walk to the path and read it, judged by permissions."""
    resolved = path.resolve()
    entered = all(_may(number, folder, stat.S_IXUSR, stat.S_IXOTH) for folder in resolved.parents)
    return entered and _may(number, resolved, stat.S_IRUSR, stat.S_IROTH)


def _may(number: int, path: Path, as_owner: int, as_other: int) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return bool(status.st_mode & (as_owner if status.st_uid == number else as_other))
