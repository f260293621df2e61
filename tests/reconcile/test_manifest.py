"""Manifests of the first format stay readable, and stay evidence."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from penstock.reconcile.evidence.manifest import read
from penstock.storage.errors import ObjectDamaged

LASTING: dict[str, Any] = {
    "format": "penstock-evidence/1",
    "recipe": {"recipe_id": "monthly", "version": 1, "digest": "d", "name": "monthly"},
    "engine": "duckdb",
    "inputs": {"left": {"rows": 3}, "right": {"rows": 2}},
    "totals": {"left": {"rows": 3}, "right": {"rows": 2}},
    "rules": [{"name": "by reference", "matches": 2}],
    "warnings": [],
    "files": [{"table": "matched", "name": "matched.parquet", "rows": 2, "size": 9, "sha256": "0"}],
}
OF_THE_RUN = {"aged": [], "run": {"run_id": 7}, "timings": {"match": 0.1}}


def stored(document: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """The manifest's bytes, and the result of its run: the digest is of all that lasts, as that
    format had it."""
    text = json.dumps(LASTING, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    data = json.dumps({**document, "evidence_sha256": digest, **OF_THE_RUN}).encode()
    return data, {"prefix": "runs/7/", "evidence_sha256": digest}


def test_a_manifest_of_the_first_format_is_read() -> None:
    data, result = stored(LASTING)
    assert read(data, result)["run"] == {"run_id": 7}


@pytest.mark.parametrize("name", sorted(LASTING))
def test_a_manifest_of_the_first_format_of_which_anything_changed_is_refused(name: str) -> None:
    data, result = stored(LASTING | {name: "another"})
    with pytest.raises(ObjectDamaged):
        read(data, result)
