"""A snapshot: the files of one mapping version at one moment, and the states it goes through."""

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
_LONGEST, _KEPT = 180, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """`prefix` is where its files are, below the storage root; None once they were cleaned up."""

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

    def check(self, wanted: SnapshotStatus) -> None:
        check_step(self.snapshot_id, self.status, wanted)


def check_step(snapshot_id: int, now: SnapshotStatus, wanted: SnapshotStatus) -> None:
    if wanted not in _STEPS[now]:
        possible = ", ".join(sorted(_STEPS[now])) or "none"
        raise InvalidStateTransition(
            f"Snapshot {snapshot_id} is {now}; it cannot become {wanted}.",
            hint=f"Possible from here: {possible}.",
            status=str(now),
            wanted=str(wanted),
        )


def prefix_of(owner: str, mapping_id: int | None, version: int | None, snapshot_id: int) -> str:
    """Where a snapshot's files are; a snapshot without a mapping has 0 in its place."""
    return keys.prefix(_segment(owner), str(mapping_id or 0), f"v{version or 0}", str(snapshot_id))


def _segment(owner: str) -> str:
    """The owner as one part of a key: what cannot stand there is written as `=` and its bytes, a
    name that is too long as its beginning and its digest; so no two meet."""
    safe = "".join(
        c if c.isascii() and (c.isalnum() or c in "_.@+-") else _escaped(c) for c in owner
    )
    if len(safe) > _LONGEST:
        safe = f"{safe[:_KEPT]}=x{hashlib.sha256(owner.encode()).hexdigest()}"
    return safe if safe[:1].isalnum() else f"_{safe}"


def _escaped(character: str) -> str:
    return "".join(f"={byte:02X}" for byte in character.encode())
