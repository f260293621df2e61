"""Holds `uv.lock` against a local advisory database: `python -m tools.advisories [FOLDER]`.

The folder has advisories in the OSV form, as JSON or YAML, at any depth: a copy of the PyPA
advisory database, or an unpacked export of OSV. It is named by argument or PENSTOCK_ADVISORIES;
nothing is fetched. Exit codes: 0 nothing applies, or no database is there; 1 an advisory applies; 2
the database cannot be read.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from packaging.version import InvalidVersion, Version

from tools.lockfile import LOCK, NAME, normalized, read, runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "PENSTOCK_ADVISORIES"
_SUFFIXES = frozenset({".json", ".yaml", ".yml"})


class UnreadableDatabase(Exception):
    """The folder is no advisory database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An advisory that applies to a locked package."""

    advisory: str
    package: str
    version: str
    is_runtime: bool
    summary: str
    fixed: tuple[str, ...]

    def __str__(self) -> str:
        use = "runtime" if self.is_runtime else "development"
        mend = f"fixed in {', '.join(self.fixed)}" if self.fixed else "no fixed version is named"
        return f"{self.package} {self.version} ({use}): {self.advisory}: {self.summary} [{mend}]"


def matches(folder: Path, lock: Path = LOCK) -> tuple[int, list[Match]]:
    """How many advisories of PyPI packages there are, and those that apply."""
    locked: dict[str, list[str]] = {}
    for package in read(lock):
        if package["name"] != NAME:
            locked.setdefault(package["name"], []).append(package["version"])
    serving = {(package.name, package.version) for package in runtime(lock)}
    count = 0
    applying: list[Match] = []
    for advisory in _advisories(folder):
        if advisory.get("withdrawn"):
            continue
        count += 1
        applying += [
            Match(
                advisory=str(advisory["id"]),
                package=name,
                version=version,
                is_runtime=(name, version) in serving,
                summary=_summary(advisory),
                fixed=tuple(_fixed(affected)),
            )
            for affected in advisory.get("affected", ())
            for name in [_name(affected)]
            for version in locked.get(name, ())
            if applies(affected, version)
        ]
    if not count:
        raise UnreadableDatabase(f"{folder} has no advisory in it.")
    return count, sorted(applying, key=str)


def applies(affected: dict[str, Any], version: str) -> bool:
    if version in affected.get("versions", ()):
        return True
    ranges = [entry for entry in affected.get("ranges", ()) if entry["type"] != "GIT"]
    if not ranges:
        return not affected.get("versions") and not affected.get("ranges")
    return any(_within(entry["events"], Version(version)) for entry in ranges)


def _within(events: list[dict[str, str]], version: Version) -> bool:
    """Each event turns it on or off from its version on; the last one that is not later decides."""
    inside = False
    for kind, value in sorted(
        ((kind, value) for event in events for kind, value in event.items()),
        key=lambda pair: (_version(pair[1]), pair[0] != "fixed"),
    ):
        at = _version(value)
        match kind:
            case "introduced" if at <= version:
                inside = True
            case "fixed" if at <= version:
                inside = False
            case "last_affected" if at < version:
                inside = False
    return inside


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        raise UnreadableDatabase(f"{text!r} is no version of a Python package.") from None


def _name(affected: dict[str, Any]) -> str:
    package = affected.get("package", {})
    return normalized(package.get("name", "")) if package.get("ecosystem") == "PyPI" else ""


def _fixed(affected: dict[str, Any]) -> Iterator[str]:
    for entry in affected.get("ranges", ()):
        if entry["type"] != "GIT":
            yield from (event["fixed"] for event in entry["events"] if "fixed" in event)


def _summary(advisory: dict[str, Any]) -> str:
    text = str(advisory.get("summary") or advisory.get("details") or "no description")
    return text.strip().splitlines()[0][:120]


def _advisories(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.rglob("*")):
        if file.suffix in _SUFFIXES and file.is_file():
            advisory = _loaded(file)
            if any(_name(affected) for affected in advisory.get("affected", ())):
                yield advisory


def _loaded(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text()
        document = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as e:
        raise UnreadableDatabase(f"{file} cannot be read: {e}") from None
    return document if isinstance(document, dict) and "id" in document else {}


def main(arguments: list[str]) -> int:
    named = arguments[0] if arguments else os.environ.get(VARIABLE, "")
    if not named:
        print(
            "No advisory database is here, so nothing was checked. Name the folder of one:"
            f" make advisories {VARIABLE}=/path/to/advisory-database"
        )
        return 0
    try:
        if not Path(named).is_dir():
            raise UnreadableDatabase(f"{named} is no folder.")
        count, applying = matches(Path(named))
    except UnreadableDatabase as e:
        print(e, file=sys.stderr)
        return 2
    for match in applying:
        print(match)
    print(f"{count:,} advisories; {len(applying)} apply to what uv.lock names.")
    return 1 if applying else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
