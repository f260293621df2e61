"""A new data directory, made aside and renamed into place, so that a half-made one is never taken
for a whole one."""

from __future__ import annotations

import os
import shutil
import tarfile
from typing import TYPE_CHECKING

from penstock.kit.postgres import failure, process
from penstock.kit.postgres.errors import PostgresFailed
from penstock.kit.postgres.settings import SUPERUSER

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.kit.postgres.account import Account
    from penstock.kit.postgres.binaries import Binaries
    from penstock.kit.postgres.holder import Lock
    from penstock.kit.postgres.paths import Places


async def initialise(at: Places, binaries: Binaries, lock: Lock, archive: Path | None) -> None:
    """Only with the lock held: what an earlier, killed start left is swept away."""
    fresh = at.folder / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    if archive is None:
        await create(fresh, at, binaries, lock)
    else:
        _unpack(archive, fresh, at.account)
        await _checked(at, [str(binaries.initdb), f"--pgdata={fresh}", "--sync-only"], lock)
    fresh.rename(at.data)
    _sync(at.folder)


async def create(fresh: Path, at: Places, binaries: Binaries, lock: Lock) -> None:
    """Run initdb; a machine without the first locale gets the plainest one."""
    try:
        await _checked(at, _command(binaries, fresh, "C.UTF-8"), lock)
    except PostgresFailed as e:
        if "invalid locale name" not in e.message:
            raise
        await _checked(at, _command(binaries, fresh, "C"), lock)


async def _checked(at: Places, command: list[str], lock: Lock) -> None:
    code, output = await process.run(at.account, command, cwd=at.folder, keep=lock.fd)
    if code:
        raise failure.explain(output, at.folder)


def _command(binaries: Binaries, fresh: Path, locale: str) -> list[str]:
    # Nobody: the rules that let anybody in are written together with the password.
    return [
        str(binaries.initdb),
        f"--pgdata={fresh}",
        f"--username={SUPERUSER}",
        f"--locale={locale}",
        "--encoding=UTF8",
        "--auth=reject",
        "--no-instructions",
    ]


def _unpack(archive: Path, fresh: Path, account: Account) -> None:
    with tarfile.open(archive) as packed:
        # Debian's 3.11.2 knows no filters yet.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(fresh)  # noqa: S202 - the operator made it
    fresh.chmod(0o700)
    for path in (fresh, *fresh.rglob("*")):
        account.own(path)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
