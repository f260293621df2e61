"""Every promise of the threat model names a test that exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@cache
def functions_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def promises() -> list[str]:
    section = PAGE.read_text().split("## Promises")[1].split("## What is not promised")[0]
    bullets = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
    return [bullet.split("\n\n")[0] for bullet in bullets]


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = NAMED.findall(PAGE.read_text())
    assert named
    assert [f"{file}::{name}" for file, name in named if name not in functions_in(file)] == []


def test_every_promise_names_a_test() -> None:
    without = [
        promise
        for promise in promises()
        if not NAMED.search(promise) and not promise.startswith("Not promised")
    ]
    assert without == []
