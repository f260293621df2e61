"""Mappings and their versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.graphs.listing import containing

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from penstock.graphs.mappings.definition import Definitions, EdgeDefinition, NodeDefinition

SortKey: TypeAlias = Literal[
    "created_at", "updated_at", "name", "owner_username", "current_version", "id"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingRecord:
    """A mapping without the definitions of its versions."""

    mapping_id: int
    owner_username: str
    name: str
    description: str | None
    data_source_id: int | None
    current_version: int
    revision: int
    created_at: datetime
    updated_at: datetime
    ttl: timedelta | None
    inactivity_timeout: timedelta | None
    expires_at: datetime | None
    last_used_at: datetime
    node_count: int
    edge_type_count: int
    snapshot_count: int

    @property
    def etag(self) -> str:
        return f"{self.current_version}-{self.revision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingVersion:
    """Immutable once written."""

    mapping_id: int
    version: int
    definitions: Definitions
    change_description: str | None
    created_at: datetime
    created_by: str

    @property
    def node_definitions(self) -> tuple[NodeDefinition, ...]:
        return self.definitions.nodes

    @property
    def edge_definitions(self) -> tuple[EdgeDefinition, ...]:
        return self.definitions.edges


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSummary:
    mapping_id: int
    version: int
    node_count: int
    edge_type_count: int
    snapshot_count: int
    change_description: str | None
    created_at: datetime
    created_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingFilter:
    owner: str | None = None
    search: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def values(self) -> dict[str, object]:
        return {
            "owner": self.owner,
            "search": None if self.search is None else containing(self.search),
            "created_after": self.created_after,
            "created_before": self.created_before,
        }
