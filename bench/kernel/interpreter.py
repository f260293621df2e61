"""Python environments for peers: the project's own, or one of a newer Python for those that need
it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache" / "bench" / "python"
NEWER = ("python3.14", "python3.13", "python3.12")
_IS_NEWER = "import sys; sys.exit(sys.version_info < (3, 12))"


class NotHere(Exception):
    """A peer cannot run on this machine, and why."""


def python_with(module: str) -> str:
    """The interpreter that can import the module; the environment of a newer one is made if need
    be."""
    if importlib.util.find_spec(module) is not None:
        return sys.executable
    python = FOLDER / "bin" / "python"
    if _imports(python, module):
        return str(python)
    _sync(_newer())
    if not _imports(python, module):
        raise NotHere(f"{module} is not in the dependency group `bench`")
    return str(python)


def _imports(python: Path, module: str) -> bool:
    if not python.exists():
        return False
    command = [
        str(python),
        "-c",
        f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({module!r}))",
    ]
    return subprocess.run(command, check=False).returncode == 0


def _newer() -> str:
    """pyenv's commands are stubs that fail for a version that is not chosen, so its folders are
    looked into too."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [path for name in NEWER if (path := shutil.which(name))]
    candidates += [
        str(path) for path in sorted(versions.glob("3.1[2-9]*/bin/python3"), reverse=True)
    ]
    for candidate in candidates:
        if (
            subprocess.run(
                [candidate, "-c", _IS_NEWER], capture_output=True, check=False
            ).returncode
            == 0
        ):
            return candidate
    raise NotHere("it needs Python 3.12 or newer, and this machine has none")


def _sync(python: str) -> None:
    uv = ROOT / ".cache" / "bootstrap" / "bin" / "uv"
    command = [str(uv), "sync", "--quiet", "--frozen", "--only-group", "bench", "--python", python]
    environment = os.environ | {
        "UV_PROJECT_ENVIRONMENT": str(FOLDER),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotHere(f"its environment cannot be made: {done.stderr.strip()[-300:]}")
