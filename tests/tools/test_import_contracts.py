"""Violations of the layers, planted in a copy of the package, are found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import import_contracts

ROOT = Path(import_contracts.__file__).resolve().parents[1]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

PLANTED = {
    "a capability that imports a workload": ("jobs/planted.py", "penstock.graphs.errors"),
    "a workload that imports another": ("reconcile/planted.py", "penstock.maintenance.errors"),
    "a capability that imports its neighbor": ("storage/planted.py", "penstock.sources.errors"),
    "the floor that imports a capability": ("kit/planted.py", "penstock.jobs.model"),
    "a worker that imports the web edge": ("worker/planted.py", "penstock.api.errors"),
    "a workload that imports the wiring": ("graphs/planted.py", "penstock.wiring.migrations"),
    "a client that imports the kernel": ("client/planted.py", "penstock.jobs.model"),
    "a widget that imports the client": ("widget/planted.py", "penstock.client.errors"),
    "a workload that imports the client": ("graphs/planted.py", "penstock.client.errors"),
    "a worker that imports the database": ("worker/planted.py", "penstock.kit.db"),
    "a kernel that imports the web framework": ("jobs/planted.py", "fastapi"),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's Python files and the contracts, alone in a folder."""
    target = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        ROOT / "src",
        target / "src",
        ignore=lambda folder, names: [
            name for name in names if Path(folder, name).is_file() and not name.endswith(".py")
        ],
    )
    (target / ".importlinter").write_text(import_contracts.render(import_contracts.packages()))
    return target


def lint(copy: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache"],
        cwd=copy,
        env={"PYTHONPATH": str(copy / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_package_keeps_its_contracts(copy: Path) -> None:
    run = lint(copy)
    assert run.returncode == 0, run.stdout


def test_every_planted_violation_is_found(copy: Path) -> None:
    for number, (file, imported) in enumerate(PLANTED.values()):
        module = copy / "src" / "penstock" / file.replace("planted", f"planted_{number}")
        module.write_text(f"import {imported}\n")
    output = lint(copy).stdout
    missed = [
        violation
        for number, (violation, (file, _)) in enumerate(PLANTED.items())
        if f"penstock.{Path(file).parent}.planted_{number}" not in output
    ]
    assert missed == []


def test_a_package_without_a_layer_is_refused() -> None:
    with pytest.raises(SystemExit, match="No layer for billing"):
        import_contracts.render([*import_contracts.packages(), "billing"])


def test_the_committed_contracts_are_those_of_the_layers() -> None:
    committed = (ROOT / ".importlinter").read_text()
    assert committed == import_contracts.render(import_contracts.packages())
