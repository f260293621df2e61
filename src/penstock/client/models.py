"""Models of the API's resources: frozen, typed, with the server's whole response in `raw`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - the decoder reads the fields' types
from typing import Any

from penstock.client.words import InstanceStatus, Role, SnapshotStatus, StepStatus  # noqa: TC001 - as above

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node label and the query that gives its rows.

    `primary_key` and `properties` are `(name, type)` pairs or `Property`; see `node()` for the
    short way.
    """

    label: str
    sql: str
    primary_key: Property
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge type between two labels and the query that gives its rows."""

    type: str
    from_node: str
    to_node: str
    sql: str
    from_key: str
    to_key: str
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingInfo:
    id: int
    owner_username: str
    name: str
    description: str | None = None
    current_version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    ttl: str | None = None
    inactivity_timeout: str | None = None
    snapshot_count: int = 0
    node_count: int = 0
    edge_type_count: int = 0
    data_source_id: int | None = None
    node_definitions: tuple[Node, ...] = ()
    edge_definitions: tuple[Edge, ...] = ()
    change_description: str | None = None
    version: int | None = None
    version_created_at: datetime | None = None
    version_created_by: str | None = None
    warnings: tuple[Raw, ...] = ()
    raw: Raw = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInfo:
    id: int
    mapping_id: int | None = None
    mapping_version: int | None = None
    owner_username: str = ""
    name: str = ""
    description: str | None = None
    status: SnapshotStatus = "pending"
    gcs_path: str | None = None
    size_bytes: int | None = None
    node_counts: dict[str, int] = field(default_factory=dict)
    edge_counts: dict[str, int] = field(default_factory=dict)
    progress: Raw | None = None
    error_message: str | None = None
    failed_step: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    ready_at: datetime | None = None
    expires_at: datetime | None = None
    ttl: str | None = None
    inactivity_timeout: str | None = None
    last_used_at: datetime | None = None
    raw: Raw = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceInfo:
    id: int
    snapshot_id: int | None = None
    snapshot_name: str | None = None
    mapping_id: int | None = None
    mapping_version: int | None = None
    owner_username: str = ""
    wrapper_type: str = ""
    name: str = ""
    description: str | None = None
    status: InstanceStatus = "starting"
    instance_url: str = ""
    explorer_url: str | None = None
    pod_name: str | None = None
    url_slug: str = ""
    progress: Raw | None = None
    error_code: str | None = None
    error_message: str | None = None
    failed_phase: str | None = None
    stack_trace: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    started_at: datetime | None = None
    last_activity_at: datetime | None = None
    expires_at: datetime | None = None
    ttl: str | None = None
    inactivity_timeout: str | None = None
    memory_usage_bytes: int | None = None
    disk_usage_bytes: int | None = None
    cpu_cores: int | None = None
    memory_gb: int | None = None
    node_count: int | None = None
    edge_count: int | None = None
    raw: Raw = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    status: StepStatus
    type: str | None = None
    row_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of an instance (`steps`) or of a snapshot (`jobs`, its exports)."""

    phase: str
    progress_percent: float = 0.0
    current_step: str | None = None
    error_message: str | None = None
    steps: tuple[Step, ...] = ()
    jobs_total: int = 0
    jobs_pending: int = 0
    jobs_claimed: int = 0
    jobs_submitted: int = 0
    jobs_completed: int = 0
    jobs_failed: int = 0
    jobs: tuple[Raw, ...] = ()
    raw: Raw = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSourceInfo:
    id: int
    name: str = ""
    type: str = ""
    owner_username: str = ""
    is_default: bool = False
    config: Raw | None = None
    has_credentials: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    tested_at: datetime | None = None
    test_ok: bool | None = None
    test_message: str | None = None
    raw: Raw = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """`api_key` is there once, in the answer that makes the first user."""

    username: str
    email: str | None = None
    display_name: str | None = None
    role: Role = "analyst"
    is_active: bool = True
    created_at: datetime | None = None
    updated_at: datetime | None = None
    last_login_at: datetime | None = None
    role_changed_at: datetime | None = None
    role_changed_by: str | None = None
    api_key: str | None = field(default=None, repr=False)
    raw: Raw = field(default_factory=dict, repr=False)


def definition(value: Node | Edge) -> Raw:
    """A definition as the API takes it."""
    properties = [{"name": p.name, "type": p.type} for p in value.properties]
    if isinstance(value, Node):
        key = {"name": value.primary_key.name, "type": value.primary_key.type}
        return {
            "label": value.label,
            "sql": value.sql,
            "primary_key": key,
            "properties": properties,
        }
    return {
        "type": value.type,
        "from_node": value.from_node,
        "to_node": value.to_node,
        "sql": value.sql,
        "from_key": value.from_key,
        "to_key": value.to_key,
        "properties": properties,
    }


def node(label: str, sql: str, key: str, key_type: str = "STRING", **properties: str) -> Node:
    """`node("Person", "SELECT id, name FROM people", "id", "INT64", name="STRING")`."""
    return Node(
        label=label,
        sql=sql,
        primary_key=Property(name=key, type=key_type),
        properties=_typed(properties),
    )


def edge(
    type_: str, between: tuple[str, str], sql: str, keys: tuple[str, str], **properties: str
) -> Edge:
    """`edge("KNOWS", ("Person", "Person"), "SELECT a, b, since FROM knows", ("a", "b"),
    since="DATE")`."""
    return Edge(
        type=type_,
        from_node=between[0],
        to_node=between[1],
        sql=sql,
        from_key=keys[0],
        to_key=keys[1],
        properties=_typed(properties),
    )


def _typed(properties: dict[str, str]) -> tuple[Property, ...]:
    return tuple(Property(name=name, type=kind) for name, kind in properties.items())
