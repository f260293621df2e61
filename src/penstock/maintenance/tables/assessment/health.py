"""Computes the health of a table: a score from 0 to 100, issues and the expected gain. No I/O.

The weights are small files 40, deletes 30, history 15 and manifests 15. Orphans and skew are
reported without weight: the first is an estimate, and no action fixes the second. A tiny table is
always healthy.

If the effect of the actions is known, only what they would fix lowers the score. Small files in
partitions with too few of them, snapshots too young to expire and too few deletes for a rewrite are
reported without weight.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import TYPE_CHECKING, TypedDict

from penstock.maintenance.actions.model import MB, Name
from penstock.maintenance.tables.layout.sizes import LEAST_BYTES, MIN_INPUT_FILES, SMALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.kit.json_value import JsonObject
    from penstock.maintenance.tables.assessment.expectation import Compaction, Rewrite
    from penstock.maintenance.tables.assessment.facts import Facts

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
    points: float = 0.0
    """Points subtracted from the score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The expected gain and cost of maintenance."""

    files: int = 0
    bytes: int = 0
    planning_seconds: float = 0.0
    cost_seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Files saved per second of work, with one second of start-up."""
        return self.files / (1.0 + self.cost_seconds)


class StoredIssue(TypedDict):
    """`Issue` in the stored health of a table."""

    code: str
    severity: str
    message: str
    evidence: dict[str, float | int | None]
    action: str | None
    points: float


class StoredGain(TypedDict):
    """`Gain` in the stored health of a table."""

    files: int
    cost_seconds: float


class StoredHealth(TypedDict, total=False):
    """What `Health.to_json` gave at the last refresh; empty for a table that cannot be read."""

    score: int
    tier: str
    level: str
    issues: list[StoredIssue]
    gain: StoredGain
    actions: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    score: int
    tier: str
    issues: tuple[Issue, ...]
    gain: Gain = field(default_factory=Gain)

    @property
    def level(self) -> str:
        return (
            "healthy" if self.score >= HEALTHY else "warning" if self.score >= POOR else "critical"
        )

    @property
    def actions(self) -> tuple[Name, ...]:
        actions = {
            issue.action
            for issue in self.issues
            if issue.action and issue.severity is not Severity.INFO
        }
        return tuple(name for name in Name if name in actions)

    def to_json(self) -> JsonObject:
        return asdict(self) | {"level": self.level, "actions": [str(a) for a in self.actions]}


def judge(facts: Facts, *, now_ms: int) -> Health:
    damping = min(1.0, (facts.bytes or 0) / LEAST_BYTES) if facts.bytes is not None else 1.0
    issues = [
        _small_files(facts, damping, now_ms),
        _deletes(facts, now_ms),
        _history(facts, now_ms),
        _manifests(facts),
        _orphans(facts),
        _skew(facts),
    ]
    real = tuple(issue for issue in issues if issue is not None)
    return Health(
        score=score_of(real), tier=str(facts.tier), issues=real, gain=_gain(facts, now_ms)
    )


def score_of(issues: Iterable[Issue]) -> int:
    return max(0, round(100 - sum(issue.points for issue in issues)))


def _issue(
    code: str, share: float, message: str, action: Name | None, **evidence: float | None
) -> Issue:
    """`share` is the severity from 0 to 1; an issue with share 0 is reported without weight."""
    share = min(1.0, max(0.0, share))
    severity = (
        Severity.CRITICAL if share > 0.66 else Severity.WARNING if share > 0.2 else Severity.INFO
    )
    points = round(WEIGHTS.get(code, 0) * share, 3)
    return Issue(
        code=code,
        severity=severity,
        message=message,
        evidence=evidence,
        action=action,
        points=points,
    )


def _small_files(facts: Facts, damping: float, now_ms: int) -> Issue | None:
    files, size, good = facts.data_files, facts.bytes, SMALL * facts.target_bytes
    if not files or size is None:
        return None
    small = files if facts.small_files is None else facts.small_files
    if facts.compaction is None:
        fewest = max(1, ceil(size / facts.target_bytes))
        taken, outputs, average = small, fewest, size / files
        share = (small / files) * _size_gap(average, good) * min(1.0, (files - fewest) / 12)
        message = (
            f"{small} of {files} data files are smaller than they should be; {fewest} would do."
        )
        if files < MIN_INPUT_FILES or damping * share <= 0:
            return None
    else:
        rewrite = facts.compaction.at(now_ms)
        taken, outputs, average = (
            rewrite.files,
            rewrite.outputs,
            rewrite.bytes / max(1, rewrite.files),
        )
        share = (taken / files) * _size_gap(average, good) * min(1.0, (taken - outputs) / 12)
        message = _of_rewrite(facts.compaction, rewrite, small, files, now_ms)
        if small < MIN_INPUT_FILES and share <= 0:
            return None
    return _issue(
        "small_files",
        damping * share,
        message,
        Name.REWRITE_DATA_FILES,
        files=files,
        small_files=facts.small_files,
        average_bytes=size // files,
        rewritten_files=None if facts.compaction is None else taken,
        written_files=None if facts.compaction is None else outputs,
    )


def _size_gap(average: float, good: float) -> float:
    """The distance of the average file size from a good size, from 0 to 1."""
    return 1 - min(average, good) / good


def _of_rewrite(
    compaction: Compaction, rewrite: Rewrite, small: int, files: int, now_ms: int
) -> str:
    count = f"{small} of {files} data files are smaller than they should be"
    if compaction.refused is not None:
        return f"{count}, and a rewrite is refused: {compaction.refused}"
    hot = compaction.hot_at(now_ms).files
    later = f"; {hot} more are in partitions that are being written to" if hot else ""
    if not rewrite.files:
        return f"{count}, too few in any one partition to be worth a rewrite{later}."
    return f"{count}; a rewrite turns {rewrite.files} into {rewrite.outputs}{later}."


def _deletes(facts: Facts, now_ms: int) -> Issue | None:
    count = facts.delete_files
    if not count:
        return None
    rows = (facts.position_deletes or 0) + (facts.equality_deletes or 0)
    ratio = max(
        rows / max(1, facts.rows or 1) / DELETES_BAD, count / max(1, facts.data_files or 1) / 2
    )
    applied = None if facts.compaction is None else facts.compaction.at(now_ms).delete_files
    curable = 1.0 if applied is None else min(1.0, applied / count)
    message = f"{count} delete files mark {rows} rows that every reader must filter out."
    if applied is not None and applied < count:
        message += f" A rewrite applies {applied} of them."
    return _issue(
        "deletes",
        min(1.0, ratio) * curable,
        message,
        Name.REWRITE_DATA_FILES,
        delete_files=count,
        deleted_rows=rows,
        applied_files=applied,
    )


def _history(facts: Facts, now_ms: int) -> Issue | None:
    days = 0.0 if facts.oldest_snapshot_ms is None else (now_ms - facts.oldest_snapshot_ms) / DAY_MS
    bad = max(_many(facts.snapshots, SNAPSHOTS_FINE, SNAPSHOTS_BAD), _old(facts.snapshots, days))
    if bad <= 0:
        return None
    message = (
        f"The table has {facts.snapshots} snapshots, the oldest from {days:.1f} days ago; each "
        "commit rewrites the list of all of them."
    )
    expirable = facts.expirable_snapshots
    if expirable is not None:
        fewer = _many(facts.snapshots, SNAPSHOTS_FINE, SNAPSHOTS_BAD)
        fewer -= _many(facts.snapshots - expirable, SNAPSHOTS_FINE, SNAPSHOTS_BAD)
        bad = max(fewer, _old(facts.snapshots, days) if expirable else 0.0)
        message += f" {expirable} can expire now."
    return _issue(
        "history",
        bad,
        message,
        Name.EXPIRE_SNAPSHOTS,
        snapshots=facts.snapshots,
        expirable_snapshots=expirable,
        oldest_days=round(days, 2),
    )


def _many(count: int, fine: int, bad: int) -> float:
    return min(1.0, max(0.0, (count - fine) / (bad - fine)))


def _old(snapshots: int, days: float) -> float:
    return 0.3 if snapshots > 3 and days > 2 * OLD_DAYS else 0.0


def _manifests(facts: Facts) -> Issue | None:
    if facts.manifests is None or facts.manifests <= MANIFESTS_FINE:
        return None
    share = _many(facts.manifests, MANIFESTS_FINE, MANIFESTS_BAD)
    message = f"{facts.manifests} manifests are read to plan a scan."
    if facts.manifests_after is not None:
        share -= _many(facts.manifests_after, MANIFESTS_FINE, MANIFESTS_BAD)
        message += f" A rewrite leaves {facts.manifests_after}."
    return _issue(
        "manifests",
        share,
        message,
        Name.REWRITE_MANIFESTS,
        manifests=facts.manifests,
        manifest_bytes=facts.manifest_bytes,
        manifests_after=facts.manifests_after,
    )


def _orphans(facts: Facts) -> Issue | None:
    if not facts.orphan_files:
        return None
    return _issue(
        "orphans",
        min(1.0, (facts.orphan_bytes or 0) / max(1, facts.bytes or 1)),
        f"{facts.orphan_files} unreferenced files are in the table's location.",
        Name.REMOVE_ORPHAN_FILES,
        orphan_files=facts.orphan_files,
        orphan_bytes=facts.orphan_bytes,
    )


def _skew(facts: Facts) -> Issue | None:
    share, partitions = facts.largest_partition_share, facts.partitions or 0
    if share is None or partitions < 3 or share < 0.5:
        return None
    return _issue(
        "skew",
        0.1,
        f"One of {partitions} partitions holds {share:.0%} of the bytes.",
        None,
        largest_share=share,
    )


def _gain(facts: Facts, now_ms: int) -> Gain:
    files, size = facts.data_files, facts.bytes
    if not files or size is None:
        return Gain()
    if facts.compaction is None:
        after = max(1, ceil(size / facts.target_bytes), facts.partitions or 1)
        fewer = max(0, files - after) + (facts.delete_files or 0)
        rewritten = size if facts.small_bytes is None else facts.small_bytes
    else:
        rewrite = facts.compaction.at(now_ms)
        fewer, rewritten = (
            max(0, rewrite.files - rewrite.outputs) + rewrite.delete_files,
            rewrite.bytes,
        )
    left = 1 if facts.manifests_after is None else facts.manifests_after
    return Gain(
        files=fewer,
        bytes=facts.orphan_bytes or 0,
        planning_seconds=round(
            PLANNING_SECONDS_A_MANIFEST * max(0, (facts.manifests or 1) - left), 3
        ),
        cost_seconds=round(rewritten / CPU_BYTES_A_SECOND, 3),
    )
