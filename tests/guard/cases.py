"""Reads corpora: text files with a heading `## dialects expectation` before each statement."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    dialect: str
    expected: str
    sql: str

    def __str__(self) -> str:
        return f"{self.dialect}: {' '.join(self.sql.split())[:70]}"


def statements(name: str) -> list[tuple[list[str], str, str]]:
    """(dialects, expectation, statement) of each block in the file."""
    blocks = (_CORPUS / name).read_text(encoding="utf-8").removeprefix("## ").split("\n## ")
    headed = (block.partition("\n") for block in blocks)
    return [
        (heading.split()[0].split(","), " ".join(heading.split()[1:]), sql.strip("\n"))
        for heading, _, sql in headed
    ]


def cases(name: str, *, dialect: str | None = None) -> list[Case]:
    """One case a dialect a statement."""
    return [
        Case(dialect=name, expected=expected, sql=sql)
        for dialects, expected, sql in statements(name)
        for name in dialects
        if dialect in (None, name)
    ]


def lines(name: str) -> list[str]:
    """A corpus of one case a line; `\\x…` and `\\u…` stand for what cannot be typed, `#` opens a
    comment line."""
    text = (_CORPUS / name).read_text(encoding="utf-8")
    return [_decoded(line) for line in text.splitlines() if line and not line.startswith("# ")]


def _decoded(line: str) -> str:
    return (
        line.encode("ascii", "backslashreplace").decode("unicode_escape") if "\\" in line else line
    )
