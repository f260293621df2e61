"""SQL lives in files, one statement each, with `:named` parameters.

    SQL = load("penstock.jobs.sql")
    await tx.fetch(SQL.claim, queue="default", limit=10)

A file's header comment names its invariant, its index and its locks. Names become `$1, $2, …` once, at load.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

_TOKEN = re.compile(
    r"""(?P<skip>--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\$\$.*?\$\$|::)|:(?P<name>[a-z_][a-z0-9_]*)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    name: str
    text: str
    parameters: tuple[str, ...]

    def bind(self, values: dict[str, Any]) -> list[Any]:
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
        return match["skip"] if parameter is None else f"${order.setdefault(parameter, len(order) + 1)}"

    text = _TOKEN.sub(number, source).strip().removesuffix(";")
    return Statement(name, text, tuple(order))


class Library:
    """The statements of one folder, as attributes."""

    def __init__(self, package: str) -> None:
        files = (f for f in resources.files(package).iterdir() if f.name.endswith(".sql"))
        self._statements = {f.name.removesuffix(".sql"): parse(f.name[:-4], f.read_text()) for f in files}

    def __getattr__(self, name: str) -> Statement:
        try:
            return self._statements[name]
        except KeyError:
            raise AttributeError(f"there is no {name}.sql") from None

    def __iter__(self) -> Any:
        return iter(self._statements.values())


def load(package: str) -> Library:
    return Library(package)
