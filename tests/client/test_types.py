"""Whether a type checker knows everything that `import penstock` gives.

Only what the plain distribution brings is looked at, in a site-packages of its own: the rooms of
the server are not what people import.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE = Path(penstock.__file__).parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the client alone, and what it needs from ours."""
    folder: Path = tmp_path_factory.mktemp("typed") / "env"
    venv.create(folder, with_pip=False)
    packages = (
        folder
        / "lib"
        / f"python{sys.version_info.major}.{sys.version_info.minor}"
        / "site-packages"
    )
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib"))
    # The widget itself, view.py, needs an extra; what the client promises of it is in its contract.
    ignored = shutil.ignore_patterns("__pycache__", "static", "view.py")
    for room in ("client", "widget"):
        shutil.copytree(PACKAGE / room, packages / "penstock" / room, ignore=ignored)
    for name in ("__init__.py", "py.typed"):
        shutil.copy(PACKAGE / name, packages / "penstock" / name)
    return folder


def _verified(installed: Path) -> Mapping[str, Any]:
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--verifytypes",
        "penstock",
        "--ignoreexternal",
        "--outputjson",
    ]
    path = f"{installed / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(
        command, env=environment, cwd=installed, capture_output=True, text=True, check=False
    )
    report: dict[str, Any] = json.loads(done.stdout)["typeCompleteness"]
    return report


def test_every_public_name_has_a_type(installed: Path) -> None:
    report = _verified(installed)
    assert report["pyTypedPath"].endswith("penstock/py.typed")
    unknown = [s["name"] for s in report["symbols"] if not s["isTypeKnown"] or s["isTypeAmbiguous"]]
    assert unknown == []
    assert report["completenessScore"] == 1
    assert {"penstock.connect", "penstock.Client", "penstock.AsyncClient"} <= {
        s["name"] for s in report["symbols"]
    }
