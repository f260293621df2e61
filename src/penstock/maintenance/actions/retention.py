"""Snapshot retention by the Iceberg specification's rules for branches and tags. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import ancestors_of

from penstock.maintenance.errors import Refused
from penstock.maintenance.tables.layout.sizes import whole_number

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.refs import SnapshotRef

    from penstock.maintenance.actions.model import Action

DEFAULT_AGE_MS = 5 * 86_400 * 1000
DEFAULT_KEEP = 3
AGE = "history.expire.max-snapshot-age-ms"
KEEP = "history.expire.min-snapshots-to-keep"
REF_AGE = "history.expire.max-ref-age-ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    age_ms: int
    keep: int
    ref_age_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    snapshots: frozenset[int]
    """Snapshots to expire."""
    refs: frozenset[str]
    """Branches and tags to remove, by their own or the table's settings."""

    @property
    def nothing(self) -> bool:
        return not self.snapshots and not self.refs


def rule_for(metadata: TableMetadata, action: Action) -> Rule:
    """Neither a request nor our defaults go below the retention that the table promises."""
    age = action.number("older_than_seconds", -1) * 1000
    keep = action.number("retain_last", -1)
    promised_age, promised_keep = _number(metadata, AGE), _number(metadata, KEEP)
    if age < 0:
        age = DEFAULT_AGE_MS if promised_age is None else promised_age
    if keep < 0:
        keep = DEFAULT_KEEP if promised_keep is None else promised_keep
    return Rule(
        age_ms=max(age, promised_age or 0),
        keep=max(keep, promised_keep or 1),
        ref_age_ms=_number(metadata, REF_AGE),
    )


def _number(metadata: TableMetadata, name: str) -> int | None:
    """A retention property that cannot be parsed is refused, not guessed."""
    value = metadata.properties.get(name)
    if value is None:
        return None
    number = whole_number(value)
    if number is None:
        raise Refused(
            f"The table's {name} is {value[:80]!r}, which is not a number.",
            hint="Set it to a number, or remove it.",
        )
    return number


def expired(metadata: TableMetadata, rule: Rule, *, now_ms: int) -> Verdict:
    refs = {
        name
        for name, ref in metadata.refs.items()
        if _ref_expired(metadata, name, ref, rule, now_ms)
    }
    stay: set[int] = set()
    referenced: set[int] = set()
    for name, ref in metadata.refs.items():
        if name in refs:
            continue
        stay |= _kept_by(metadata, ref, rule, now_ms)
        referenced |= {
            s.snapshot_id for s in ancestors_of(metadata.snapshot_by_id(ref.snapshot_id), metadata)
        }
    young = {s.snapshot_id for s in metadata.snapshots if s.timestamp_ms >= now_ms - rule.age_ms}
    stay |= young - referenced
    return Verdict(
        snapshots=frozenset(s.snapshot_id for s in metadata.snapshots) - stay, refs=frozenset(refs)
    )


def _ref_expired(
    metadata: TableMetadata, name: str, ref: SnapshotRef, rule: Rule, now_ms: int
) -> bool:
    longest = ref.max_ref_age_ms if ref.max_ref_age_ms is not None else rule.ref_age_ms
    if name == MAIN_BRANCH or longest is None:
        return False
    snapshot = metadata.snapshot_by_id(ref.snapshot_id)
    return snapshot is None or now_ms - snapshot.timestamp_ms > longest


def _kept_by(metadata: TableMetadata, ref: SnapshotRef, rule: Rule, now_ms: int) -> set[int]:
    if ref.snapshot_ref_type == SnapshotRefType.TAG:
        return {ref.snapshot_id}
    keep = ref.min_snapshots_to_keep or rule.keep
    since = now_ms - (ref.max_snapshot_age_ms or rule.age_ms)
    snapshot_ids: set[int] = set()
    for snapshot in ancestors_of(metadata.snapshot_by_id(ref.snapshot_id), metadata):
        if len(snapshot_ids) >= keep and snapshot.timestamp_ms < since:
            break
        snapshot_ids.add(snapshot.snapshot_id)
    return snapshot_ids
