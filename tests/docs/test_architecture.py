"""The files and names of ARCHITECTURE.md exist, and each walk is short."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "penstock"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
WALKS = re.split(r"^## (?=Walk )", TEXT, flags=re.MULTILINE)[1:]
NAMED = re.compile(r"`([\w]+/[\w/]+\.py)`(?:\s+`(\w+)`)?")
FOLDER = re.compile(r"^\| [^|]*\| `(\w+)/`(?:, `(\w+)/`)? \|", re.MULTILINE)
LONGEST_WALK = 12


def names(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    defined = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, defined)}


def test_every_file_and_name_of_the_page_exists() -> None:
    mentioned = NAMED.findall(TEXT)
    assert len(mentioned) > 40
    missing = []
    for path, name in mentioned:
        file = PACKAGE / path
        if not file.is_file():
            file = ROOT / path
        if not file.is_file() or (name and name not in names(file)):
            missing.append(f"{path} {name}".strip())
    assert missing == []


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.split("\n")[0])
def test_a_walk_has_at_most_twelve_files_and_returns_to_none(walk: str) -> None:
    section = walk.split("\n## ")[0]
    files = [path for path, _ in NAMED.findall(section)]
    assert 8 <= len(files) <= LONGEST_WALK
    assert len(files) == len(set(files))


def test_the_table_of_packages_is_complete() -> None:
    listed = {name for row in FOLDER.findall(TEXT) for name in row if name}
    existing = {p.name for p in PACKAGE.iterdir() if (p / "__init__.py").is_file()}
    assert listed == existing
