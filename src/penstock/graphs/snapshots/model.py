"""A snapshot (the exported files of one mapping version) and its state machine."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.errors import InvalidStateTransition
from penstock.storage import keys

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta


class SnapshotStatus(enum.StrEnum):
    PENDING = "pending"
    CREATING = "creating"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def open(self) -> bool:
        return self in (SnapshotStatus.PENDING, SnapshotStatus.CREATING)


_STEPS: Mapping[SnapshotStatus, frozenset[SnapshotStatus]] = {
    SnapshotStatus.PENDING: frozenset({SnapshotStatus.CREATING, SnapshotStatus.CANCELLED}),
    SnapshotStatus.CREATING: frozenset(
        {SnapshotStatus.READY, SnapshotStatus.FAILED, SnapshotStatus.CANCELLED}
    ),
    SnapshotStatus.FAILED: frozenset({SnapshotStatus.CREATING}),
    SnapshotStatus.READY: frozenset(),
    SnapshotStatus.CANCELLED: frozenset(),
}
_MAX_SEGMENT, _KEPT_LENGTH = 180, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """`prefix` is the path of its files below the storage root; None after they were deleted."""

    snapshot_id: int
    mapping_id: int | None
    mapping_version: int | None
    data_source_id: int | None
    owner_username: str
    name: str
    description: str | None
    status: SnapshotStatus
    prefix: str | None
    size_bytes: int | None
    node_counts: Mapping[str, int]
    edge_counts: Mapping[str, int]
    error_message: str | None
    failed_step: str | None
    publish_job: int | None
    created_at: datetime
    updated_at: datetime
    ready_at: datetime | None
    expires_at: datetime | None
    ttl: timedelta | None
    inactivity_timeout: timedelta | None
    last_used_at: datetime | None

    def check(self, status: SnapshotStatus) -> None:
        check_step(self.snapshot_id, self.status, status)


def check_step(snapshot_id: int, now: SnapshotStatus, target: SnapshotStatus) -> None:
    if target not in _STEPS[now]:
        possible = ", ".join(sorted(_STEPS[now])) or "none"
        raise InvalidStateTransition(
            f"Snapshot {snapshot_id} is {now}; it cannot become {target}.",
            hint=f"Possible from here: {possible}.",
            status=str(now),
            wanted=str(target),
        )


def prefix_of(owner: str, mapping_id: int | None, version: int | None, snapshot_id: int) -> str:
    """The storage prefix of a snapshot; without a mapping, its id is 0."""
    return keys.prefix(_segment(owner), str(mapping_id or 0), f"v{version or 0}", str(snapshot_id))


def _segment(owner: str) -> str:
    """The owner as one segment of a key: other characters are escaped as `=XX`, and long names are
    truncated with a digest, so segments stay unique."""
    safe = "".join(
        c if c.isascii() and (c.isalnum() or c in "_.@+-") else _escaped(c) for c in owner
    )
    if len(safe) > _MAX_SEGMENT:
        safe = f"{safe[:_KEPT_LENGTH]}=x{hashlib.sha256(owner.encode()).hexdigest()}"
    return safe if safe[:1].isalnum() else f"_{safe}"


def _escaped(character: str) -> str:
    return "".join(f"={byte:02X}" for byte in character.encode())
