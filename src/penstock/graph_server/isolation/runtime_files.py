"""Files that a confined process must still read: Python, its packages and their libraries."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix/store")


def runtime_paths() -> list[Path]:
    scheme = sysconfig.get_paths().values()
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, *scheme, *filter(None, sys.path)}
    here = Path(__file__).parents[3]
    return [Path(place) for place in (*_SYSTEM, *sorted(python)) if _is_narrow(place)] + [here]


def _is_narrow(place: str) -> bool:
    """Never the root, a home or the working directory."""
    path = Path(place)
    return path.is_absolute() and path not in (Path("/"), Path.home(), Path.cwd())
