"""Refuse variables and parameters whose name says nothing of what they hold.

python -m tools.vague_names [PATH …]
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "bench", "tools", "examples")
VAGUE = frozenset(
    ("each", "found", "given", "held", "kept", "known", "made", "said", "told", "wanted")
)


def bindings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and name of every vague binding. Fields of classes may be names of the wire."""
    fields = {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if id(node) in fields:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in VAGUE:
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) if name in VAGUE:
                yield node.lineno, name


def vague(paths: list[Path]) -> list[str]:
    files = [
        file
        for path in paths
        for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))
    ]
    return [
        f"{file}:{line}: {name} says nothing of what it holds"
        for file in files
        for line, name in bindings(ast.parse(file.read_text()))
    ]


def main() -> None:
    paths = [Path(argument) for argument in sys.argv[1:]]
    problems = vague(paths or [ROOT / folder for folder in FOLDERS])
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
