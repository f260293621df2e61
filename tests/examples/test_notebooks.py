"""The notebooks run from top to bottom in a kernel, and are kept without outputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"
SAYS = {
    "fraud_rings.ipynb": ["6,800 nodes and 45,784 edges", "8 accounts passed 236,"],
    "quickstart.ipynb": ["Bookshop", "left: 3 of 4 matched; breaks: {'no_key': 1}", "report.html"],
    "two_ledgers.ipynb": [
        "INV-4: no key; nearest: nobody",
        "PAY-5: date out of window; nearest: INV-5",
        "right: ",
    ],
    "worn_table.ipynb": ["15 files, 1,500 rows", "1 file, 1,500 rows", "lake.notebooks.*"],
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lasts as long as the home whose sources notebooks leave here."""
    return tmp_path_factory.mktemp("notebooks")


def test_every_notebook_is_tried() -> None:
    assert {file.name for file in NOTEBOOKS.glob("*.ipynb")} == SAYS.keys()


@pytest.mark.parametrize("name", sorted(SAYS))
def test_a_notebook_is_kept_without_outputs(name: str) -> None:
    cells = _read(NOTEBOOKS / name).cells
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]


@pytest.mark.parametrize("name", sorted(SAYS))
def test_a_notebook_runs_and_shows_what_it_promises(running: Cli, name: str, folder: Path) -> None:
    shown = _executed(NOTEBOOKS / name, folder, running)
    for words in SAYS[name]:
        assert words in shown


def test_a_notebook_runs_a_second_time(running: Cli, folder: Path) -> None:
    """Whoever opens it again finds what they left."""
    for _ in range(2):
        assert "Bookshop" in _executed(NOTEBOOKS / "quickstart.ipynb", folder, running)


def _executed(notebook: Path, folder: Path, running: Cli) -> str:
    """All that its cells gave, as text; in a process of its own, for a kernel's client brings its
    own event loop."""
    done = folder / notebook.name
    done.write_text(notebook.read_text())
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PENSTOCK_")}
    ran = subprocess.run(
        [
            str(Path(sys.executable).with_name("jupyter-execute")),
            "--inplace",
            "--timeout=120",
            str(done),
        ],
        env={**clean, "PENSTOCK_HOME": str(running.home), "IPYTHONDIR": str(folder / "ipython")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    outputs = [output for cell in _read(done).cells for output in cell.get("outputs", ())]
    return "\n".join(_text(output) for output in outputs)


def _text(output: nbformat.NotebookNode) -> str:
    return str(
        output.get("text")
        or output.get("data", {}).get("text/html")
        or output.get("data", {}).get("text/plain")
    )


def _read(file: Path) -> nbformat.NotebookNode:
    return nbformat.read(file, as_version=4)
