"""Writes the software bill of materials: `python -m tools.sbom [FILE]`, CycloneDX 1.6 as JSON.

It has every package of `uv.lock` that an installation with all extras may have, each with its
files' digests as the registry has them. The same lock makes the same file.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import __version__
from tools.licences import expressions
from tools.lockfile import LOCK, NAME, ROOT, direct, purl, runtime

if TYPE_CHECKING:
    from tools.lockfile import Artefact, Package

FILE = ROOT / "dist" / "sbom.cdx.json"
_SIMPLE = re.compile(r"[A-Za-z0-9.+-]+")


def sbom(lock: Path = LOCK) -> dict[str, Any]:
    packages = runtime(lock)
    by_purl = expressions(packages)
    own = purl(NAME, __version__)
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{own}#{digest}").urn,
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": NAME,
                "version": __version__,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [_component(package, by_purl[package.purl]) for package in packages],
        "dependencies": [
            {"ref": own, "dependsOn": direct(lock)},
            *({"ref": package.purl, "dependsOn": list(package.needs)} for package in packages),
        ],
    }


def _component(package: Package, expression: str) -> dict[str, Any]:
    simple = _SIMPLE.fullmatch(expression) is not None
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "licenses": [{"license": {"id": expression}} if simple else {"expression": expression}],
        "externalReferences": [_distribution(artefact) for artefact in package.artefacts],
    }
    if source := next((file for file in package.artefacts if file.is_source), None):
        component["hashes"] = [{"alg": "SHA-256", "content": source.sha256}]
    if package.extras:
        component["properties"] = [
            {"name": f"{NAME}:extra", "value": extra} for extra in package.extras
        ]
    return component


def _distribution(artefact: Artefact) -> dict[str, Any]:
    hashes = [{"alg": "SHA-256", "content": artefact.sha256}]
    return {"type": "distribution", "url": artefact.url, "hashes": hashes}


def main(file: Path) -> None:
    document = sbom()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(document['components'])} packages in {file}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
