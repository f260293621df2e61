"""What `uv.lock` says of the packages that Penstock runs with."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "uv.lock"
NAME = "penstock"
EVERYWHERE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A file of a package, as the registry has it."""

    url: str
    sha256: str
    is_source: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    name: str
    version: str
    artefacts: tuple[Artefact, ...]
    needs: tuple[str, ...]
    """Purls of what it depends on."""
    extras: tuple[str, ...]
    """Extras of Penstock that bring it; empty: every installation has it."""

    @property
    def purl(self) -> str:
        return purl(self.name, self.version)


def purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read(lock: Path = LOCK) -> list[dict[str, Any]]:
    packages: list[dict[str, Any]] = tomllib.loads(lock.read_text())["package"]
    return packages


def runtime(lock: Path = LOCK) -> list[Package]:
    """Every package of an installation with all extras, on any platform; none that only
    developers need."""
    packages = read(lock)
    brought: dict[str, set[str]] = {}
    edges: set[tuple[str, str]] = set()
    for extra, dependencies in _named(packages).items():
        for needing, needed in _reached(packages, dependencies):
            brought.setdefault(needed, set()).add(extra)
            edges.add((needing, needed))
    return sorted(
        (
            _package(package, brought[_purl(package)], edges)
            for package in packages
            if _purl(package) in brought
        ),
        key=lambda package: package.purl,
    )


def direct(lock: Path = LOCK) -> list[str]:
    """Purls of what Penstock itself names, in any extra."""
    packages = read(lock)
    names = [
        dependency for dependencies in _named(packages).values() for dependency in dependencies
    ]
    return sorted(
        {_purl(chosen) for dependency in names for chosen in _chosen(packages, dependency)}
    )


def _named(packages: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What Penstock names: under an extra, or under nothing for every installation."""
    root = next(package for package in packages if package["name"] == NAME)
    named = {EVERYWHERE: root["dependencies"], **root.get("optional-dependencies", {})}
    return {
        extra: [dependency for dependency in dependencies if dependency["name"] != NAME]
        for extra, dependencies in named.items()
    }


def _reached(
    packages: list[dict[str, Any]], dependencies: list[dict[str, Any]]
) -> set[tuple[str, str]]:
    """Pairs of purls, of which the first needs the second; Penstock's own is left out."""
    waiting = [("", dependency) for dependency in dependencies]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    edges: set[tuple[str, str]] = set()
    while waiting:
        needing, dependency = waiting.pop()
        extras = tuple(dependency.get("extra", ()))
        for package in _chosen(packages, dependency):
            needed = _purl(package)
            edges.add((needing, needed))
            if (needed, extras) in seen:
                continue
            seen.add((needed, extras))
            optional = package.get("optional-dependencies", {})
            named = [package.get("dependencies", []), *(optional.get(e, []) for e in extras)]
            waiting += [(needed, further) for group in named for further in group]
    return edges


def _chosen(packages: list[dict[str, Any]], dependency: dict[str, Any]) -> list[dict[str, Any]]:
    """The packages of that name; more than one where the platform decides the version."""
    version = dependency.get("version")
    return [
        package
        for package in packages
        if package["name"] == dependency["name"] and version in (None, package["version"])
    ]


def _purl(package: dict[str, Any]) -> str:
    return purl(package["name"], package["version"])


def _package(package: dict[str, Any], extras: set[str], edges: set[tuple[str, str]]) -> Package:
    sources = [(package["sdist"], True)] if "sdist" in package else []
    files = sources + [(wheel, False) for wheel in package.get("wheels", ())]
    own = _purl(package)
    return Package(
        name=package["name"],
        version=package["version"],
        artefacts=tuple(
            Artefact(
                url=file["url"], sha256=file["hash"].removeprefix("sha256:"), is_source=is_source
            )
            for file, is_source in files
        ),
        needs=tuple(sorted(needed for needing, needed in edges if needing == own)),
        extras=() if EVERYWHERE in extras else tuple(sorted(extras)),
    )
