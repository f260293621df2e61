"""A fresh data directory in an archive, for those who cannot run initdb.

initdb refuses a user without an entry in /etc/passwd, and some container platforms give every
container such a user. The server itself does not mind. So an image may carry this archive, to be
unpacked in place of the first initdb.
"""

from __future__ import annotations

import asyncio
import tarfile
from typing import TYPE_CHECKING

from penstock.kit.postgres import holder, initdb, paths, programs
from penstock.kit.postgres.errors import ClusterHeld
from penstock.kit.postgres.settings import ClusterSettings
from penstock.kit.scratch import scratch_folder

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.kit.postgres.binaries import Binaries
    from penstock.kit.postgres.paths import Places


async def write(target: Path, binaries: Binaries) -> None:
    """Everybody may read it: it holds nothing but empty databases."""
    with scratch_folder("template") as scratch:
        at = _settle(scratch)
        lock = holder.take(at)
        if lock is None:
            raise ClusterHeld(f"Somebody else works in {scratch}.")
        try:
            reachable = programs.within_reach(binaries, at.account, ClusterSettings().shared)
            await initdb.create(at.data, at, reachable, lock)
        finally:
            lock.release()
        await asyncio.to_thread(_pack, at.data, target)


def _settle(scratch: Path) -> Places:
    scratch.chmod(0o755)
    return paths.settle(scratch / "pg", ClusterSettings().shared)


def _pack(data: Path, target: Path) -> None:
    with tarfile.open(target, "w:gz", compresslevel=1) as packed:
        packed.add(data, arcname=".")
    target.chmod(0o644)
