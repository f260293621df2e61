"""What users get was built from what is here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import penstock.widget
from tests.servers import node

UI = Path(__file__).parents[2] / "ui"
STATIC = Path(penstock.widget.__file__).parent / "static"


def test_the_bundles_are_built_from_these_sources(tmp_path: Path) -> None:
    copy = tmp_path / "ui"
    shutil.copytree(UI, copy, ignore=shutil.ignore_patterns("node_modules"))
    npm = node.node()
    npm.run("ci", "--silent", "--offline", "--cache", str(node.PACKAGES), cwd=copy)
    npm.run("run", "--silent", "build", "--", str(tmp_path / "built"), cwd=copy)
    built = {file.name: file.read_bytes() for file in (tmp_path / "built").iterdir()}
    assert built == {file.name: file.read_bytes() for file in STATIC.iterdir()}, (
        "run `make ui` and commit what it wrote"
    )


def test_every_package_is_pinned_by_its_digest_and_by_no_host() -> None:
    lock = json.loads((UI / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert all("resolved" not in package for package in packages.values())
    manifest = json.loads((UI / "package.json").read_text())
    assert all(
        version[0].isdigit()
        for version in (manifest["dependencies"] | manifest["devDependencies"]).values()
    )
