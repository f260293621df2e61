"""SQL lives in files, with `:named` parameters.

    SQL = load("penstock.jobs.sql")
    await tx.fetch(SQL.claim, queue="default", limit=10)

A file holds one statement, which has the file's name, or several, each after a line `-- name: …`.
Comments at a statement's head name its invariant, its index and its locks. Parameters become
`$1, $2, …` once, at load.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<skip>--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\$\$.*?\$\$|::)|:(?P<name>[a-z_][a-z0-9_]*)""",
    re.DOTALL,
)


_SECTION = re.compile(r"^-- name: ([a-z][a-z0-9_]*)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    name: str
    text: str
    parameters: tuple[str, ...]

    def bind(self, values: dict[str, object]) -> list[object]:
        if len(values) != len(self.parameters):
            unknown = set(values) ^ set(self.parameters)
            raise TypeError(f"{self.name}.sql: parameters that do not fit: {sorted(unknown)}")
        return [values[name] for name in self.parameters]

    def ascending(self) -> Statement:
        """The same list from its other end."""
        return replace(self, text=self.text.replace(" DESC", " ASC"))


def parse(name: str, source: str) -> Statement:
    order: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        parameter = match["name"]
        return (
            match["skip"]
            if parameter is None
            else f"${order.setdefault(parameter, len(order) + 1)}"
        )

    text = _TOKEN.sub(number, source).strip().removesuffix(";")
    return Statement(name, text, tuple(order))


def statements(file_name: str, source: str) -> Iterator[Statement]:
    """The statements of one file."""
    head, *sections = _SECTION.split(source)
    if not sections:
        yield parse(file_name.removesuffix(".sql"), source)
        return
    if head.strip():
        raise ValueError(f"{file_name}: text before the first `-- name:` line")
    for name, text in zip(sections[::2], sections[1::2], strict=True):
        yield parse(name, text)


class Library:
    """The statements of one folder, as attributes."""

    def __init__(self, package: str) -> None:
        self._statements: dict[str, Statement] = {}
        for file in resources.files(package).iterdir():
            if not file.name.endswith(".sql"):
                continue
            for statement in statements(file.name, file.read_text()):
                if statement.name in self._statements:
                    raise ValueError(f"{package}: two statements are named {statement.name}")
                self._statements[statement.name] = statement

    def __getattr__(self, name: str) -> Statement:
        try:
            return self._statements[name]
        except KeyError:
            raise AttributeError(f"there is no SQL statement {name}") from None

    def __iter__(self) -> Iterator[Statement]:
        return iter(self._statements.values())


def load(package: str) -> Library:
    return Library(package)
