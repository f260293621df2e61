"""The pages that people read, and the fenced blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    page: str
    line: int
    language: str
    marker: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "examples" / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            page=str(page.relative_to(ROOT)),
            line=text.count("\n", 0, match.start()) + 1,
            language=match["info"].strip().partition(" ")[0],
            marker=match["info"].strip().partition(" ")[2],
            text=match["text"],
        )
        for match in FENCE.finditer(text)
    ]
