"""A disk that is full: what to say when a scratch folder has no room."""

from __future__ import annotations

import errno
import re
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.engines.errors import ScratchFull

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTING = "TMPDIR"
"""What says where a process keeps its scratch folders."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SAID = re.compile(
    r"No space left|Disk quota exceeded|File too large"
    r"|max_temp_directory_size|used disk space during the spilling"
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
