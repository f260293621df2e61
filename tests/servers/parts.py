"""Real parts that tests need, such as servers and other engines: fetched once, before any test.

`make fetch` gets them all (`fetch.py` lists them). A test never fetches: a part that is not here
fails it, with the word to run `make fetch`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import ssl
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError

import certifi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

REPOSITORY = Path(__file__).parents[2]
LOCAL = REPOSITORY / ".cache"
"""What `make clean` removes."""
SHARED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"
"""What is large, and the same for every clone."""
MAVEN_CENTRAL = os.environ.get("PENSTOCK_MAVEN", "https://repo.maven.apache.org/maven2")
GO_PROXY = os.environ.get("PENSTOCK_GOPROXY", "https://proxy.golang.org")
NPM_REGISTRY = os.environ.get("PENSTOCK_NPM", "https://registry.npmjs.org")
_CHUNK = 1 << 20
_PATIENCE = 60


class Missing(Exception):
    """A part is not here, or cannot be had, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`fetch` gets what `present` does not find; it may raise `Missing`."""

    name: str
    present: Callable[[], bool]
    fetch: Callable[[], None]

    def require(self) -> None:
        if not self.present():
            raise Missing(f"{self.name} is not here. Run `make fetch`, and see what it says.")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Only one process at a time fetches into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fetch into, which becomes `target` when all went well."""
    work = target.with_name(f"{target.name}.fetching")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    yield work
    shutil.rmtree(target, ignore_errors=True)
    work.rename(target)


def from_maven(artifact: str, sha256: str, folder: Path) -> Path:
    """`group:name:version:ending` of Maven Central."""
    group, name, version, ending = artifact.split(":")
    file = f"{name}-{version}.{ending}"
    url = f"{MAVEN_CENTRAL}/{group.replace('.', '/')}/{name}/{version}/{file}"
    return download(url, sha256, folder / file)


def download(url: str, sha256: str, to: Path) -> Path:
    digest = hashlib.sha256()
    try:
        with (
            urllib.request.urlopen(url, timeout=_PATIENCE, context=_trust()) as source,
            to.open("wb") as sink,
        ):
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                sink.write(chunk)
    except (URLError, OSError) as e:
        raise Missing(f"{url} cannot be fetched: {e}") from e
    if digest.hexdigest() != sha256:
        raise Missing(f"{url} is not what it was: SHA-256 {digest.hexdigest()}, not {sha256}")
    return to


def _trust() -> ssl.SSLContext:
    """This machine's authorities, and those of the package index for a machine that has none."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def from_pypi(folder: Path, *wheels: str) -> None:
    """Exactly these, without what they depend on."""
    command = [uv_program(), "pip", "install", "-q", "--python", sys.executable, "--no-deps"]
    run([*command, "--target", str(folder), *wheels], f"PyPI does not give {' '.join(wheels)}")


def uv_program() -> str:
    bootstrapped = LOCAL / "bootstrap" / "bin" / "uv"
    uv = str(bootstrapped) if bootstrapped.is_file() else shutil.which("uv")
    if uv is None:
        raise Missing("uv is not here; ./bootstrap.sh gets it")
    return uv


def run(
    command: Sequence[str],
    failure: str,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Raises `Missing` with the failure and the end of its errors."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", **(environment or {})}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)
    if done.returncode != 0:
        raise Missing(f"{failure}: {done.stderr.strip()[-300:]}")
