"""The manifest of a run. It is written last and makes the run's files evidence.

`evidence_sha256` is the digest of the result: the files, the totals and the counts of each rule.
Two runs with the same result have the same digest, whichever engine they ran on and however their
inputs were split or named. The result of a run has the digest of the whole manifest.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, cast

import orjson

from penstock.storage.errors import ObjectDamaged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.json_value import JsonValue
    from penstock.reconcile.evidence.document import (
        FileEntry,
        Lasting,
        Manifest,
        RunEntry,
        RunResult,
        WarningEntry,
    )
    from penstock.reconcile.evidence.parquet_file import EvidenceFile
    from penstock.reconcile.matching.execution import Executed
    from penstock.reconcile.recipes.fault import Fault
    from penstock.reconcile.recipes.model import Recipe, SideName

NAME = "manifest.json"
_OF_THE_RUN = frozenset({"evidence_sha256", "aged", "run", "timings"})
FORMAT = "penstock-evidence/2"
_FIRST_FORMAT = "penstock-evidence/1"
"""Its `evidence_sha256` covers everything that does not depend on the run."""
_FOUND = ("format", "totals", "rules", "files")


def manifest(
    executed: Executed,
    recipe: Recipe,
    *,
    version: int | None,
    inputs: Mapping[SideName, Mapping[str, JsonValue]],
    run: RunEntry,
) -> Manifest:
    evidence = executed.evidence
    lasting: Lasting = {
        "format": FORMAT,
        "recipe": {
            "recipe_id": recipe.recipe_id,
            "version": version,
            "digest": recipe.digest,
            "name": recipe.name,
        },
        "engine": executed.engine,
        "inputs": dict(inputs),
        "totals": {side: totals.entry() for side, totals in evidence.sides.items()},
        "rules": evidence.rules,
        "warnings": [_warning(fault) for fault in executed.warnings],
        "files": [_file(file) for file in sorted(evidence.files, key=lambda file: file.name)],
    }
    return {
        **lasting,
        "evidence_sha256": _digest(lasting),
        "aged": [_file(file) for file in executed.aged],
        "run": run,
        "timings": executed.seconds,
    }


def read(data: bytes, result: RunResult) -> Manifest:
    """Read a stored manifest and verify it against the digests in the run's result."""
    try:
        document: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise _damaged(result) from None
    whole = result.get("manifest_sha256")
    if not isinstance(document, dict) or whole not in (None, digest(data)):
        raise _damaged(result)
    if _digest(document) != result["evidence_sha256"]:
        raise _damaged(result)
    return cast("Manifest", document)


def _damaged(result: RunResult) -> ObjectDamaged:
    key = f"{result['prefix']}{NAME}"
    return ObjectDamaged(
        f"{key} is not what was written.",
        hint="Restore it from a backup of the storage, or run the recipe again.",
        key=key,
    )


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest(document: Mapping[str, object]) -> str:
    """The expected `evidence_sha256` of a manifest."""
    if document.get("format") == _FIRST_FORMAT:
        part = {name: value for name, value in document.items() if name not in _OF_THE_RUN}
    else:
        part = {name: document.get(name) for name in _FOUND}
    return digest(orjson.dumps(part, option=orjson.OPT_SORT_KEYS))


def _file(file: EvidenceFile) -> FileEntry:
    return {
        "table": file.table,
        "name": file.name,
        "rows": file.rows,
        "size": file.size,
        "sha256": file.sha256,
    }


def _warning(fault: Fault) -> WarningEntry:
    return {
        "path": fault.path,
        "message": fault.message,
        "suggestion": fault.suggestion,
        "severity": fault.severity,
    }


def dump(document: Manifest) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
