"""The bill of materials, the licences and the advisories say what is really there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any

import pytest
from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from tools.lockfile import LOCK, ROOT, Artefact, Package, normalized, runtime

from tools import advisories, licences, sbom

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return sbom.sbom()


# the bill of materials


def test_the_bill_of_materials_is_valid_cyclonedx(document: dict[str, Any], tmp_path: Path) -> None:
    sbom.main(tmp_path / "sbom.json")
    written = json.loads((tmp_path / "sbom.json").read_text())
    assert written == document
    bom = Bom.from_json(written)
    assert len(bom.components) == len(document["components"]) > 100
    bom.validate()
    for component in written["components"]:  # to look at one address takes the schema long
        del component["externalReferences"][1:]
    for component in written["components"][3:]:
        del component["externalReferences"]
    text = json.dumps(written)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(
        text.replace('"library"', '"thing"')
    )


def installed(name: str, extras: set[str], seen: dict[str, str]) -> dict[str, str]:
    """What the metadata of installed packages need, by name: another way to the same packages."""
    waiting = [(name, frozenset(extras))]
    visited = set()
    while waiting:
        name, dependency = waiting.pop()
        if (name, dependency) in visited:
            continue
        visited.add((name, dependency))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform
        seen[normalized(name)] = package.version
        for line in package.requires or ():
            need = Requirement(line)
            environments = [{"extra": extra} for extra in dependency or {""}]
            if need.marker is None or any(need.marker.evaluate(e) for e in environments):
                waiting.append((need.name, frozenset(need.extras)))
    return seen


def test_every_package_that_an_installation_has_is_in_it(document: dict[str, Any]) -> None:
    extras = set(distribution("penstock").metadata.get_all("Provides-Extra") or ())
    needed = installed("penstock", extras, {})
    del needed["penstock"]
    listed = {(c["name"], c["version"]) for c in document["components"]}
    assert len(needed) > 100
    assert needed.items() <= listed
    assert not {"pytest", "mypy", "hypothesis"} & {name for name, _ in listed}


def test_its_digests_are_those_of_the_lock_and_its_purls_are_whole(
    document: dict[str, Any],
) -> None:
    lock = LOCK.read_text()
    for component in document["components"]:
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
        files = component["externalReferences"]
        assert all(file["url"].startswith("https://") for file in files)
        assert files
        for file in files:
            [digest] = file["hashes"]
            assert f'url = "{file["url"]}", hash = "sha256:{digest["content"]}"' in lock
        for digest in component.get("hashes", ()):
            assert re.fullmatch(r"[0-9a-f]{64}", digest["content"])


def test_what_depends_on_what_leads_from_penstock_to_every_package(
    document: dict[str, Any],
) -> None:
    needs = {entry["ref"]: entry["dependsOn"] for entry in document["dependencies"]}
    waiting, reached = [document["metadata"]["component"]["purl"]], set()
    while waiting:
        for needed in needs[waiting.pop()]:
            if needed not in reached:
                reached.add(needed)
                waiting.append(needed)
    assert reached == {component["purl"] for component in document["components"]}
    [httpx2] = [purl for purl in needs if purl.startswith("pkg:pypi/httpx2@")]
    assert any(purl.startswith("pkg:pypi/httpcore2@") for purl in needs[httpx2])


def test_the_same_lock_makes_the_same_file(document: dict[str, Any]) -> None:
    assert sbom.sbom() == document


# licences


def package(name: str) -> Package:
    file = Artefact(url="https://x.example/x", sha256="0" * 64, is_source=True)
    return Package(name=name, version="1", artefacts=(file,), needs=(), extras=())


def says(folder: Path, *lines: str) -> str:
    """What metadata with these lines are taken to say, as an installer would have left them."""
    info = folder / "thing-1.dist-info"
    info.mkdir()
    text = "\n".join(["Metadata-Version: 2.4", "Name: thing", "Version: 1", *lines])
    (info / "METADATA").write_text(text)
    return licences.declared(Distribution.at(info).metadata, "pkg:pypi/thing@1")


def test_every_runtime_package_has_a_licence_that_is_allowed() -> None:
    expressions = licences.expressions(runtime())
    assert len(expressions) > 100
    assert {"pkg:pypi/psycopg@" in purl for purl in expressions} == {True, False}


@pytest.mark.parametrize(
    ("lines", "expression"),
    [
        (["License-Expression: MIT AND Zlib"], "MIT AND Zlib"),
        (["License: Apache 2.0"], "Apache-2.0"),
        (["License: BSD-3-Clause"], "BSD-3-Clause"),
        (["Classifier: License :: OSI Approved :: MIT License"], "MIT"),
        (
            ["License: A long text.", "Classifier: License :: OSI Approved :: BSD License"],
            "BSD-3-Clause",
        ),
    ],
)
def test_a_licence_is_read_wherever_a_package_says_it(
    tmp_path: Path, lines: list[str], expression: str
) -> None:
    assert says(tmp_path, *lines) == expression


@pytest.mark.parametrize("lines", [[], ["License: UNKNOWN"], ["License: Our own licence"]])
def test_a_package_that_does_not_say_its_licence_is_refused(
    tmp_path: Path, lines: list[str]
) -> None:
    with pytest.raises(licences.UnknownLicence, match="does not say its licence"):
        says(tmp_path, *lines)


def test_a_package_that_is_neither_installed_nor_stated_is_refused() -> None:
    with pytest.raises(licences.UnknownLicence, match="not installed here"):
        licences.licence(package("no-such-package"))


@pytest.mark.parametrize(
    "expression", ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "SSPL-1.0 OR GPL-2.0-only", "Other"]
)
def test_a_licence_that_is_not_allowed_is_refused(expression: str) -> None:
    with pytest.raises(licences.ForbiddenLicence, match="judge it"):
        licences.check("thing", expression)


@pytest.mark.parametrize(
    "expression", ["MIT", "GPL-3.0-only OR MIT", "MPL-2.0 AND (GPL-2.0-only OR MIT)"]
)
def test_a_licence_that_leaves_an_allowed_choice_is_taken(expression: str) -> None:
    licences.check("thing", expression)


# advisories


def advisory(**affected: Any) -> dict[str, Any]:
    package = {"ecosystem": "PyPI", "name": "Thing.Name"}
    return {"id": "PYSEC-1", "summary": "It breaks.", "affected": [{"package": package} | affected]}


def ranges(*events: dict[str, str]) -> dict[str, Any]:
    return {"ranges": [{"type": "ECOSYSTEM", "events": list(events)}]}


@pytest.mark.parametrize(
    ("affected", "version", "hit"),
    [
        (ranges({"introduced": "0"}, {"fixed": "2.0"}), "1.9", True),
        (ranges({"introduced": "0"}, {"fixed": "2.0"}), "2.0", False),
        (ranges({"introduced": "0"}, {"fixed": "2.0"}), "2.0rc1", True),
        (ranges({"introduced": "1.0"}), "0.9", False),
        (ranges({"introduced": "1.0"}), "1.0", True),
        (ranges({"introduced": "1.0"}, {"last_affected": "1.4"}), "1.4", True),
        (ranges({"introduced": "1.0"}, {"last_affected": "1.4"}), "1.10", False),
        (
            ranges({"introduced": "0"}, {"fixed": "1"}, {"introduced": "2"}, {"fixed": "3"}),
            "1.5",
            False,
        ),
        (
            ranges({"introduced": "0"}, {"fixed": "1"}, {"introduced": "2"}, {"fixed": "3"}),
            "2.5",
            True,
        ),
        ({"versions": ["1.0"]}, "1.0", True),
        ({"versions": ["1.0"]}, "1.1", False),
        ({}, "1.0", True),
        ({"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}, "1.0", False),
    ],
)
def test_an_advisory_applies_to_the_versions_that_it_names(
    affected: dict[str, Any], version: str, hit: bool
) -> None:
    assert advisories.applies(affected, version) is hit


def database(folder: Path, suffix: str) -> None:
    name = "vulns/httpx2/PYSEC-2026-1"
    file = folder / f"{name}{suffix}"
    file.parent.mkdir(parents=True)
    document = advisory(**ranges({"introduced": "0"}, {"fixed": "999"}))
    document["affected"][0]["package"]["name"] = "HTTPX2"
    file.write_text(json.dumps(document))  # which is YAML too
    other = document | {"id": "PYSEC-2", "withdrawn": "2026-01-01T00:00:00Z"}
    file.with_name(f"PYSEC-2026-2{suffix}").write_text(json.dumps(other))


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_locked_package_with_an_advisory_is_named_with_its_mend(
    tmp_path: Path, suffix: str
) -> None:
    database(tmp_path, suffix)
    count, [match] = advisories.matches(tmp_path)
    version = next(p.version for p in runtime() if p.name == "httpx2")
    assert count == 1
    assert str(match) == f"httpx2 {version} (runtime): PYSEC-1: It breaks. [fixed in 999]"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.advisories", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )


def test_the_check_says_plainly_that_there_is_no_database() -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing was checked" in done.stdout


def test_the_check_fails_for_an_advisory_and_for_a_folder_that_is_no_database(
    tmp_path: Path,
) -> None:
    empty, broken = tmp_path / "empty", tmp_path / "broken"
    empty.mkdir()
    broken.mkdir()
    (broken / "x.json").write_text("{")
    database(tmp_path / "real", ".json")
    done = run(PENSTOCK_ADVISORIES=str(tmp_path / "real"))
    assert (done.returncode, "1 apply to" in done.stdout) == (1, True)
    for folder, message in (
        (empty, "no advisory"),
        (broken, "x.json"),
        (tmp_path / "no", "no folder"),
    ):
        done = run(str(folder))
        assert (done.returncode, message in done.stderr, done.stdout) == (2, True, "")
