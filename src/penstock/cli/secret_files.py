"""Secrets of the processes that `penstock up` starts: in private files, not in the environment.

Whoever may read `/proc/PID/environ` reads a process's environment, and every child inherits it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from penstock.graph_server.settings import SECRETS
from penstock.wiring.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = "PENSTOCK_SECRETS_DIR"
_WITH_CREDENTIALS = ("catalogs", "maintenance_engines")
"""Settings that are no secret as a whole, and may contain one."""


def secret_variables() -> frozenset[str]:
    """The variables whose values are secrets."""
    fields = Settings.model_fields.items()
    names = {name for name, field in fields if field.annotation in (SecretStr, SecretStr | None)}
    return SECRETS | {f"PENSTOCK_{name.upper()}" for name in names.union(_WITH_CREDENTIALS)}


def move_to_files(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment without secrets: they are in `folder`, with those of the folder it named."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    contents = _read(environment.get(_FOLDER))
    variables = secret_variables() & environment.keys()
    contents |= {name.lower(): environment[name] for name in variables}
    for name, content in contents.items():
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(content)
    plain = {name: value for name, value in environment.items() if name not in variables}
    return plain | {_FOLDER: str(folder)}


def _read(folder: str | None) -> dict[str, str]:
    files = Path(folder).iterdir() if folder else ()
    ours = (file for file in files if file.name.lower().startswith("penstock_") and file.is_file())
    return {file.name.lower(): file.read_text() for file in ours}
