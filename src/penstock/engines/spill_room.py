"""Temporary disk: how much an engine may use, and what to say when there is no more."""

from __future__ import annotations

import errno
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engines.errors import EngineFull, ScratchFull

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTING = "TMPDIR"
"""What says where a process keeps its scratch folders."""
SPILL_SETTING = "reconcile_spill_mb"
_SHARE_OF_DISK = 0.9
"""Of what is free: the other files of a run need some as well."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SAID = re.compile(
    r"No space left|Disk quota exceeded|File too large"
    r"|max_temp_directory_size|used disk space during the spilling"
)
_SPILLED = re.compile(r"max_temp_directory_size|used disk space during the spilling")


@dataclass(frozen=True, slots=True)
class SpillRoom:
    """How much an engine may spill into a folder: what its limits say, or what the disk has if that
    is less."""

    folder: Path
    size: int
    limited_by_setting: bool

    @classmethod
    def of(cls, folder: Path, spill_bytes: int) -> SpillRoom:
        room = int(shutil.disk_usage(folder).free * _SHARE_OF_DISK)
        return cls(folder, max(1, min(room, spill_bytes)), spill_bytes <= room)

    def error(self, text: str) -> EngineFull | ScratchFull | None:
        """What to raise for an engine's error, if that is about disk."""
        if not is_full(text):
            return None
        if not (self.limited_by_setting and _SPILLED.search(text)):
            return full(self.folder)
        return EngineFull(
            f"The query needs more temporary disk than the {self.size:,} bytes it may use.",
            hint=f"Narrow the rules or filters; the operator's setting {SPILL_SETTING} decides.",
        )


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn the error of a disk without room into one that names the folder and the setting."""
    try:
        yield
    except OSError as e:
        if e.errno in _NO_ROOM or is_full(str(e)):
            raise full(folder) from None
        raise


def is_full(text: str) -> bool:
    """Whether an error's text says that a disk has no room."""
    return _SAID.search(text) is not None


def full(folder: Path) -> ScratchFull:
    size = shutil.disk_usage(folder).total
    return ScratchFull(
        f"There was no room to write in {folder}, on a disk of {size:,} bytes.",
        hint=f"Free some there, or set {SETTING} of the worker to a folder on a larger disk.",
        path=str(folder),
        setting=SETTING,
    )
