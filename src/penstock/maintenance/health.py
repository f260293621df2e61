"""A table's health: 0 to 100, the reasons, and what would be gained. Pure.

Small files weigh 40, deletes 30, history 15, manifests 15; orphans and skew are told and weigh nothing, for one is
only an estimate and the other nothing that an action cures. A tiny table is healthy whatever its files are like.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

from penstock.maintenance.action import MB, Name
from penstock.maintenance.sizes import LEAST_BYTES, MIN_INPUT_FILES, SMALL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.maintenance.facts import Facts

WEIGHTS = {"small_files": 40, "deletes": 30, "history": 15, "manifests": 15}
SNAPSHOTS_FINE, SNAPSHOTS_BAD = 20, 200
MANIFESTS_FINE, MANIFESTS_BAD = 10, 200
DELETES_BAD = 0.2
DAY_MS = 86_400_000
OLD_DAYS = 5
CPU_BYTES_A_SECOND = 80 * MB
PLANNING_SECONDS_A_MANIFEST = 0.002
HEALTHY, POOR = 80, 50


class Severity(enum.StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    code: str
    severity: Severity
    message: str
    evidence: Mapping[str, float | int | None]
    action: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What maintenance would bring, and what it would cost."""

    files: int = 0
    bytes: int = 0
    planning_seconds: float = 0.0
    cost_seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Files the fewer for each second of work, with a second's start-up."""
        return self.files / (1.0 + self.cost_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    score: int
    tier: str
    issues: tuple[Issue, ...]
    gain: Gain = field(default_factory=Gain)

    @property
    def level(self) -> str:
        return "healthy" if self.score >= HEALTHY else "warning" if self.score >= POOR else "critical"

    @property
    def actions(self) -> tuple[Name, ...]:
        wanted = {issue.action for issue in self.issues if issue.action and issue.severity is not Severity.INFO}
        return tuple(name for name in Name if name in wanted)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"level": self.level, "actions": [str(a) for a in self.actions]}


def judge(facts: Facts, *, now_ms: int) -> Health:
    damping = min(1.0, (facts.bytes or 0) / LEAST_BYTES) if facts.bytes is not None else 1.0
    found = [
        _small_files(facts, damping),
        _deletes(facts),
        _history(facts, now_ms),
        _manifests(facts),
        _orphans(facts),
        _skew(facts),
    ]
    penalty = sum(WEIGHTS.get(issue.code, 0) * share for issue, share in found if issue is not None)
    issues = tuple(issue for issue, _ in found if issue is not None)
    return Health(score=max(0, round(100 - penalty)), tier=str(facts.tier), issues=issues, gain=_gain(facts))


_Found = tuple[Issue | None, float]


def _issue(code: str, share: float, message: str, action: Name | None, **evidence: float | None) -> _Found:
    if share <= 0:
        return None, 0.0
    severity = Severity.CRITICAL if share > 0.66 else Severity.WARNING if share > 0.2 else Severity.INFO
    return Issue(code=code, severity=severity, message=message, evidence=evidence, action=action), share


def _small_files(facts: Facts, damping: float) -> _Found:
    files, size, good = facts.data_files, facts.bytes, SMALL * facts.target_bytes
    if files is None or size is None or files < MIN_INPUT_FILES:
        return None, 0.0
    small = files if facts.small_files is None else facts.small_files
    fewest = max(1, ceil(size / facts.target_bytes))
    share = damping * (small / files) * (1 - min(size / files, good) / good) * min(1.0, (files - fewest) / 12)
    return _issue(
        "small_files",
        share,
        f"{small} of {files} data files are smaller than they should be; {fewest} would do.",
        Name.REWRITE_DATA_FILES,
        files=files,
        small_files=facts.small_files,
        average_bytes=size // files,
    )


def _deletes(facts: Facts) -> _Found:
    count = facts.delete_files
    if not count:
        return None, 0.0
    rows = (facts.position_deletes or 0) + (facts.equality_deletes or 0)
    ratio = max(rows / max(1, facts.rows or 1) / DELETES_BAD, count / max(1, facts.data_files or 1) / 2)
    return _issue(
        "deletes",
        min(1.0, ratio),
        f"{count} delete files hold {rows} rows that every reader must leave out.",
        Name.REWRITE_DATA_FILES,
        delete_files=count,
        deleted_rows=rows,
    )


def _history(facts: Facts, now_ms: int) -> _Found:
    days = 0.0 if facts.oldest_snapshot_ms is None else (now_ms - facts.oldest_snapshot_ms) / DAY_MS
    many = (facts.snapshots - SNAPSHOTS_FINE) / (SNAPSHOTS_BAD - SNAPSHOTS_FINE)
    old = 0.3 if facts.snapshots > 3 and days > 2 * OLD_DAYS else 0.0
    return _issue(
        "history",
        min(1.0, max(many, old)),
        f"{facts.snapshots} snapshots are kept, the oldest for {days:.1f} days; each commit carries them all.",
        Name.EXPIRE_SNAPSHOTS,
        snapshots=facts.snapshots,
        oldest_days=round(days, 2),
    )


def _manifests(facts: Facts) -> _Found:
    if facts.manifests is None:
        return None, 0.0
    share = (facts.manifests - MANIFESTS_FINE) / (MANIFESTS_BAD - MANIFESTS_FINE)
    return _issue(
        "manifests",
        min(1.0, share),
        f"{facts.manifests} manifests are read to plan a scan.",
        Name.REWRITE_MANIFESTS,
        manifests=facts.manifests,
        manifest_bytes=facts.manifest_bytes,
    )


def _orphans(facts: Facts) -> _Found:
    if not facts.orphan_files:
        return None, 0.0
    return _issue(
        "orphans",
        min(1.0, (facts.orphan_bytes or 0) / max(1, facts.bytes or 1)),
        f"{facts.orphan_files} files that nothing names lie in the table's location.",
        Name.REMOVE_ORPHAN_FILES,
        orphan_files=facts.orphan_files,
        orphan_bytes=facts.orphan_bytes,
    )


def _skew(facts: Facts) -> _Found:
    share, partitions = facts.largest_partition_share, facts.partitions or 0
    if share is None or partitions < 3 or share < 0.5:
        return None, 0.0
    return _issue(
        "skew", 0.1, f"One of {partitions} partitions holds {share:.0%} of the bytes.", None, largest_share=share
    )


def _gain(facts: Facts) -> Gain:
    files, size = facts.data_files, facts.bytes
    if not files or size is None:
        return Gain()
    after = max(1, ceil(size / facts.target_bytes), facts.partitions or 1)
    manifests = max(0, (facts.manifests or 1) - 1)
    return Gain(
        files=max(0, files - after) + (facts.delete_files or 0),
        bytes=facts.orphan_bytes or 0,
        planning_seconds=round(PLANNING_SECONDS_A_MANIFEST * manifests, 3),
        cost_seconds=round((size if facts.small_bytes is None else facts.small_bytes) / CPU_BYTES_A_SECOND, 3),
    )
