"""The manifest of a run: written last, and what makes its files evidence.

Everything in it but `run` and `timings` follows from the inputs and the recipe; `evidence_sha256` is the digest of that
part, so two runs of the same are compared by one line.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.reconcile.execution import Executed
    from penstock.reconcile.parts import EvidenceFile
    from penstock.reconcile.recipe import Recipe

NAME = "manifest.json"
FORMAT = "penstock-evidence/1"


def manifest(
    executed: Executed, recipe: Recipe, *, version: int | None, inputs: Mapping[str, Any], run: Mapping[str, Any]
) -> dict[str, Any]:
    evidence = executed.evidence
    lasting = {
        "format": FORMAT,
        "recipe": {"recipe_id": recipe.recipe_id, "version": version, "digest": recipe.digest, "name": recipe.name},
        "engine": executed.engine,
        "inputs": dict(inputs),
        "totals": {side: asdict(totals) for side, totals in evidence.sides.items()},
        "rules": evidence.rules,
        "warnings": [asdict(fault) for fault in executed.warnings],
        "files": [_file(file) for file in sorted(evidence.files, key=lambda file: file.name)],
    }
    digest = hashlib.sha256(orjson.dumps(lasting, option=orjson.OPT_SORT_KEYS)).hexdigest()
    aged = [_file(file) for file in executed.aged]
    return {**lasting, "evidence_sha256": digest, "aged": aged, "run": dict(run), "timings": dict(executed.seconds)}


def _file(file: EvidenceFile) -> dict[str, Any]:
    return {"table": file.table, "name": file.name, "rows": file.rows, "size": file.size, "sha256": file.sha256}


def dump(document: Mapping[str, Any]) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
