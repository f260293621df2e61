"""Fetches a Trino from Maven Central, once, into a cache outside the repository.

python -m tests.servers.maven
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "476"
CONNECTORS = ("iceberg", "memory", "tpch")
JAVA = 24
MODULES = {"Trino": "maven", "Spark": "spark"}
"""Which module fetches it when it is called."""

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


class Unobtainable(Exception):
    """Why there is no such server on this machine, in one line."""


def java_home(least: int = JAVA, most: int = 999, *, what: str = "Trino") -> Path:
    """A JDK that is new enough, and not too new."""
    named = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    for home in (*named, *sorted(Path("/usr/lib/jvm").glob("*"))):
        release = home / "release"
        found = re.search(r'JAVA_VERSION="(\d+)', release.read_text()) if release.is_file() else None
        if found and least <= int(found[1]) <= most and (home / "bin" / "java").is_file():
            return home
    wanted = f"{least} or newer" if most == 999 else f"{least} to {most}"
    raise Unobtainable(f"no real {what}: it needs a JDK {wanted}, in JAVA_HOME or /usr/lib/jvm")


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / f"trino-{VERSION}"


def install(patience: float) -> Path:
    """The folder with `lib` and `plugin`, fetched when it is not there yet."""
    home = cache() / "server"
    with _alone():
        if not home.is_dir():
            _fetch(home, time.monotonic() + patience)
    return home


@contextmanager
def _alone() -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(home: Path, deadline: float) -> None:
    work = cache() / "fetching"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    copy(f"io.trino:trino-server-core:{VERSION}:tar.gz", work, deadline)
    with tarfile.open(work / f"trino-server-core-{VERSION}.tar.gz") as archive:
        archive.extractall(work, filter="data")
    server = work / f"trino-server-core-{VERSION}"
    for name in CONNECTORS:
        copy(f"io.trino:trino-{name}:{VERSION}:zip", work, deadline)
        with zipfile.ZipFile(work / f"trino-{name}-{VERSION}.zip") as archive:
            archive.extractall(server / "plugin")
    server.rename(home)
    shutil.rmtree(work)


def copy(artifact: str, into: Path, deadline: float, *, what: str = "Trino") -> None:
    if shutil.which("mvn") is None:
        raise Unobtainable(f"no real {what}: Maven (mvn) is not installed, and its cache is empty")
    command = ["mvn", "-q", "-B", _PLUGIN, f"-Dartifact={artifact}", f"-DoutputDirectory={into}"]
    try:
        left = max(1.0, deadline - time.monotonic())
        done = subprocess.run(command, capture_output=True, timeout=left, cwd=into, check=False)
    except subprocess.TimeoutExpired:
        raise Unobtainable(
            f"no real {what}: fetching it takes long; run python -m tests.servers.{MODULES[what]} once, and wait"
        ) from None
    if done.returncode != 0:
        raise Unobtainable(f"no real {what}: Maven could not fetch {artifact}")


if __name__ == "__main__":
    print(java_home(), install(3600), file=sys.stderr)  # noqa: T201
