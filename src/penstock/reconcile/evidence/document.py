"""The manifest of a run and the result of its match, as they stand in JSON.

`manifest.py` writes and verifies them; the reader, the report and the API read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.json_value import JsonValue
    from penstock.reconcile.recipes.model import SideName


class FileEntry(TypedDict):
    """One evidence file; `name` is its key below the run's prefix."""

    table: str
    name: str
    rows: int
    size: int
    sha256: str


class RuleEntry(TypedDict):
    """What one rule matched; `amounts` are sums by currency for each side."""

    name: str
    pattern: str
    matches: int
    left: int
    right: int
    ambiguous: int
    greedy_clusters: int
    greedy_records: int
    amounts: Mapping[SideName, Mapping[str, str]]


class TotalsEntry(TypedDict):
    """`SideTotals` in JSON."""

    rows: int
    matched: int
    unmatched: int
    null_keys: int
    amounts: Mapping[str, Mapping[str, str]]
    reasons: Mapping[str, int]


class RecipeEntry(TypedDict):
    recipe_id: str | None
    version: int | None
    digest: str
    name: str


class WarningEntry(TypedDict):
    path: str
    message: str
    suggestion: str
    severity: str


class RunEntry(TypedDict):
    run_id: int
    parameters: Mapping[str, JsonValue]


class Lasting(TypedDict):
    """What does not depend on the run: the same for every run with the same inputs."""

    format: str
    recipe: RecipeEntry
    engine: str
    inputs: Mapping[SideName, Mapping[str, JsonValue]]
    totals: Mapping[SideName, TotalsEntry]
    rules: list[RuleEntry]
    warnings: list[WarningEntry]
    files: list[FileEntry]


class Manifest(Lasting):
    evidence_sha256: str
    aged: list[FileEntry]
    run: RunEntry
    timings: Mapping[str, float]


class ThresholdEntry(TypedDict):
    code: str
    message: str


class RunResult(TypedDict, total=False):
    """The result of a match job, and of its run. With a `threshold`, more was unmatched than the
    recipe allows."""

    prefix: str
    manifest_sha256: str
    evidence_sha256: str
    engine: str
    totals: Mapping[SideName, TotalsEntry]
    rules: list[RuleEntry]
    timings: Mapping[str, float]
    open_items: list[str]
    threshold: ThresholdEntry | None
