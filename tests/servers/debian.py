"""Packages of Debian, installed by root or unpacked by anybody; known by Debian's signature."""

from __future__ import annotations

import os
import shutil
import threading
from typing import TYPE_CHECKING

from tests.servers.parts import Missing, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOCK = "DPkg::Lock::Timeout=300"
"""Others may install something just now."""
_one_at_a_time = threading.Lock()


def install(package: str) -> None:
    """For all of this machine, which only root can."""
    apt = _apt()
    if os.geteuid() != 0:
        raise Missing(f"{package} is not installed. As root: apt-get install {package}")
    with _one_at_a_time:
        run([apt, "-qq", "update"], "apt cannot be updated")
        run(
            [apt, "-qq", "-o", LOCK, "install", "-y", "--no-install-recommends", package],
            f"apt cannot install {package}",
        )


def unpack(
    packages: list[str], folder: Path, *, options: Mapping[str, object] | None = None
) -> Path:
    """Into `folder/root`, with all that apt would install beside them; apt's own files stay away
    from this machine's. Returns the root."""
    apt = _apt()
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    private = {
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "1",
        "Dir::Cache": folder / "cache",
        "Dir::State": folder / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        **(options or {}),
    }
    own = [apt, "-qq", *(p for name, value in private.items() for p in ("-o", f"{name}={value}"))]
    names = ", ".join(packages)
    with _one_at_a_time:
        run([*own, "update"], f"apt cannot be asked for {names}")
        run(
            [*own, "install", "-y", "--no-install-recommends", "--download-only", *packages],
            f"apt cannot fetch {names}",
        )
    for package in (folder / "cache" / "archives").glob("*.deb"):
        run(["dpkg-deb", "-x", str(package), str(folder / "root")], f"{package.name} is damaged")
        package.unlink()
    return folder / "root"


def _apt() -> str:
    apt = shutil.which("apt-get")
    if apt is None:
        raise Missing("there is no apt-get here: this is no Debian")
    return apt
