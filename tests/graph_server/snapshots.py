"""Snapshots made by hand: tables in, Parquet and a manifest in a store out, as a worker leaves
them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.storage.manifest import Manifest, write_manifest
from penstock.storage.parquet_sink import write_parquet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    import pyarrow as pa

    from penstock.storage.contract import Store
    from penstock.storage.parquet_sink import SinkLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    label: str
    key: tuple[str, str]
    table: pa.Table
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        return f"nodes/{self.label}"

    def definition(self) -> dict[str, Any]:
        key = {"name": self.key[0], "type": self.key[1]}
        return {"label": self.label, "primary_key": key, "properties": _properties(self.properties)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    type: str
    ends: tuple[str, str]
    table: pa.Table
    properties: tuple[tuple[str, str], ...] = ()
    with_pair: bool = False

    @property
    def path(self) -> str:
        return f"edges/{self.type}" + (f"/{'-'.join(self.ends)}" if self.with_pair else "")

    def definition(self) -> dict[str, Any]:
        start, end = self.table.column_names[:2]
        return {
            "type": self.type,
            "from_node": self.ends[0],
            "to_node": self.ends[1],
            "from_key": start,
            "to_key": end,
            "properties": _properties(self.properties),
        }


async def publish(
    store: Store,
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    *,
    prefix: str,
    limits: SinkLimits | None = None,
    batch_rows: int | None = None,
    delta_packed: bool = False,
) -> dict[str, Any]:
    """Write them, the manifest last; what the control plane would say of it."""
    entities = {}
    for entity in (*nodes, *edges):
        written = await write_parquet(
            store,
            f"{prefix}{entity.path}/",
            entity.table.schema,
            _batches(entity.table, batch_rows),
            attempt="a1",
            limits=limits,
            delta_packed=delta_packed,
        )
        entities[entity.path] = written.entity("SELECT 1")
    await write_manifest(
        store, prefix, Manifest(created_at=datetime(2026, 1, 1, tzinfo=UTC), entities=entities)
    )
    return assignment(f"{store.url}/{prefix}", nodes, edges)


def assignment(location: str, nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, Any]:
    return {
        "snapshot_id": 42,
        "mapping_id": 5,
        "mapping_version": 3,
        "owner_username": "ada",
        "wrapper_type": "ladybug",
        "gcs_path": location,
        "node_definitions": [node.definition() for node in nodes],
        "edge_definitions": [edge.definition() for edge in edges],
    }


def _properties(columns: Sequence[tuple[str, str]]) -> list[Mapping[str, str]]:
    return [{"name": name, "type": kind} for name, kind in columns]


async def _batches(table: pa.Table, rows: int | None) -> AsyncIterator[pa.RecordBatch]:
    for batch in table.to_batches(rows):
        yield batch
