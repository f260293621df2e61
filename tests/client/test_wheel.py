"""The wheel of a clean checkout: it has all modules, and its base dependencies are enough for it.

The checkout is what git would commit, so nothing in it was generated; wheels are made of it and of
its source distribution.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tools.generate import ROOT, files


def _built(checkout: Path, target: str) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "--target", target]
    subprocess.run(build, cwd=checkout, check=True, capture_output=True, text=True)
    [result] = (checkout / "dist").glob("*.whl" if target == "wheel" else "*.tar.gz")
    return result


@pytest.fixture(scope="module")
def committed() -> list[str]:
    """The files that git has or would take, in this working tree."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, committed: list[str]) -> Path:
    folder: Path = tmp_path_factory.mktemp("checkout")
    for name in committed:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def source_distribution(checkout: Path) -> Path:
    return _built(checkout, "sdist")


@pytest.fixture(scope="module")
def wheel(source_distribution: Path, checkout: Path) -> Path:
    """After the source distribution, for building a wheel generates code in the checkout."""
    return _built(checkout, "wheel")


def _modules(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("penstock/")}


def test_the_wheel_has_what_is_committed_and_what_is_generated(
    wheel: Path, committed: list[str]
) -> None:
    generated = {file.relative_to(ROOT).as_posix() for file in files()}
    assert generated & set(committed) == set()
    sources = {name for name in committed if name.startswith("src/penstock/")} | generated
    assert _modules(wheel) == {name.removeprefix("src/") for name in sources}


def test_the_source_distribution_makes_the_same_wheel(
    source_distribution: Path, wheel: Path, tmp_path: Path
) -> None:
    with tarfile.open(source_distribution) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    assert not (unpacked / "src/penstock/client/_sync").exists()
    assert _modules(_built(unpacked, "wheel")) == _modules(wheel)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The wheel and its base dependencies, and nothing else."""
    folder: Path = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    waiting, seen = [*(distribution("penstock").requires or ())], set[str]()
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.name in seen or not (
            requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ):
            continue
        seen.add(requirement.name)
        package = distribution(requirement.name)
        waiting += package.requires or ()
        for place in {file.parts[0] for file in package.files or () if ".." not in file.parts}:
            if not (folder / place).exists():
                (folder / place).symlink_to(Path(str(package.locate_file(place))))
    return folder


@pytest.mark.parametrize(
    "code",
    [
        "import penstock; penstock.connect('http://127.0.0.1:1').close(); penstock.AsyncClient",
        "from penstock.client import definitions, models, shapes, totals, words",
        "from penstock.cli import main; main(['job', 'show', '--help'])",
        "from penstock.cli.tree import app; app(['--version'], result_action='return_value')",
    ],
)
def test_base_dependencies_are_enough_for_the_client(site: Path, code: str) -> None:
    environment = {name: value for name, value in os.environ.items() if "PENSTOCK" not in name}
    subprocess.run(
        [sys.executable, "-S", "-c", f"{code}; import sys; assert 'fastapi' not in sys.modules"],
        env=environment | {"PYTHONPATH": str(site)},
        check=True,
        capture_output=True,
        text=True,
    )
