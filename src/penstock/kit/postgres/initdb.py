"""A new data directory, made aside and renamed into place, so that a half-made one is never taken for a whole one."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from penstock.kit.postgres import failure, process

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.kit.postgres.binaries import Binaries
    from penstock.kit.postgres.places import Places

SUPERUSER = "penstock"
_LOCALES = ("C.UTF-8", "C")


async def initialise(places: Places, binaries: Binaries) -> None:
    """Only with the lock held: what an earlier, killed initdb left is swept away."""
    fresh = places.folder / "data.new"
    said = ""
    for locale in _LOCALES:
        shutil.rmtree(fresh, ignore_errors=True)
        code, said = await process.run(places.account, _command(binaries, fresh, locale), cwd=places.folder)
        if code == 0:
            fresh.rename(places.data)
            return
        if "invalid locale name" not in said:
            break
    raise failure.explain(said, places.folder)


def _command(binaries: Binaries, fresh: Path, locale: str) -> list[str]:
    # Trust is for the socket alone, and the socket's folder is 0700.
    return [
        str(binaries.initdb),
        f"--pgdata={fresh}",
        f"--username={SUPERUSER}",
        f"--locale={locale}",
        "--encoding=UTF8",
        "--auth-local=trust",
        "--auth-host=scram-sha-256",
        "--no-instructions",
    ]
