"""The tree of a mapping: versions, their snapshots, their instances. Four queries for any size."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.repository import SQL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    import asyncpg

    from penstock.graphs.mappings.model import MappingRecord
    from penstock.graphs.mappings.repository import Mappings
    from penstock.graphs.snapshots.model import SnapshotStatus
    from penstock.kit.db import Db


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceLeaf:
    instance_id: int
    name: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotBranch:
    snapshot_id: int
    name: str
    status: str
    created_at: datetime
    instances: tuple[InstanceLeaf, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionBranch:
    version: int
    change_description: str | None
    created_at: datetime
    created_by: str
    snapshots: tuple[SnapshotBranch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingTree:
    mapping: MappingRecord
    versions: tuple[VersionBranch, ...]

    @property
    def snapshots(self) -> list[SnapshotBranch]:
        return [snapshot for version in self.versions for snapshot in version.snapshots]

    @property
    def instance_count(self) -> int:
        return sum(len(snapshot.instances) for snapshot in self.snapshots)


class MappingTrees:
    def __init__(self, db: Db, mappings: Mappings) -> None:
        self._db = db
        self._mappings = mappings

    async def grow(self, mapping_id: int, *, status: SnapshotStatus | None = None) -> MappingTree:
        """Build the tree, newest first; with a status, only snapshots in that status."""
        async with self._db.transaction() as tx:
            mapping = await self._mappings.get(mapping_id, tx=tx)
            versions = await tx.fetch(SQL.tree_versions, mapping_id=mapping_id)
            snapshots = await tx.fetch(
                SQL.tree_snapshots, mapping_id=mapping_id, status=status and str(status)
            )
            ids = [row["snapshot_id"] for row in snapshots]
            instances = await tx.fetch(SQL.tree_instances, snapshot_ids=ids)
        leaves = _grouped(instances, "snapshot_id")
        branches = _grouped(snapshots, "mapping_version")
        return MappingTree(
            mapping=mapping,
            versions=tuple(
                VersionBranch(
                    **dict(row),
                    snapshots=tuple(
                        _branch(snapshot, leaves) for snapshot in branches[row["version"]]
                    ),
                )
                for row in versions
            ),
        )


def _branch(row: asyncpg.Record, leaves: dict[int, list[asyncpg.Record]]) -> SnapshotBranch:
    return SnapshotBranch(
        snapshot_id=row["snapshot_id"],
        name=row["name"],
        status=row["status"],
        created_at=row["created_at"],
        instances=tuple(
            InstanceLeaf(instance_id=leaf["instance_id"], name=leaf["name"], status=leaf["status"])
            for leaf in leaves[row["snapshot_id"]]
        ),
    )


def _grouped(rows: Iterable[asyncpg.Record], key: str) -> dict[int, list[asyncpg.Record]]:
    groups: dict[int, list[asyncpg.Record]] = defaultdict(list)
    for row in rows:
        groups[row[key]].append(row)
    return groups
