"""Limits on temporary disk space, and the errors raised when it is full."""

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
"""The variable that sets the folder of scratch folders."""
SPILL_SETTING = "reconcile_spill_mb"
_SHARE_OF_DISK = 0.9
"""Share of the free space: the other files of a run need some too."""
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DISK_FULL_TEXT = re.compile(
    r"No space left|Disk quota exceeded|File too large"
    r"|max_temp_directory_size|used disk space during the spilling"
)
_SPILLED = re.compile(r"max_temp_directory_size|used disk space during the spilling")


@dataclass(frozen=True, slots=True)
class SpillLimit:
    """How much an engine may spill into a folder: its configured limit, or the free disk space if
    less."""

    folder: Path
    size: int
    limited_by_setting: bool

    @classmethod
    def of(cls, folder: Path, spill_bytes: int) -> SpillLimit:
        free_bytes = int(shutil.disk_usage(folder).free * _SHARE_OF_DISK)
        return cls(folder, max(1, min(free_bytes, spill_bytes)), spill_bytes <= free_bytes)

    def error(self, text: str) -> EngineFull | ScratchFull | None:
        """The error to raise if an engine's error is about disk space, else None."""
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
    """Turn a disk-full OSError into one that names the folder and the setting."""
    try:
        yield
    except OSError as e:
        if e.errno in _DISK_FULL or is_full(str(e)):
            raise full(folder) from None
        raise


def is_full(text: str) -> bool:
    """Whether an error's text says that a disk is full."""
    return _DISK_FULL_TEXT.search(text) is not None


def full(folder: Path) -> ScratchFull:
    size = shutil.disk_usage(folder).total
    return ScratchFull(
        f"No disk space left to write in {folder}, on a disk of {size:,} bytes.",
        hint=f"Free disk space there, or set {SETTING} of the worker to a folder on a larger disk.",
        path=str(folder),
        setting=SETTING,
    )
