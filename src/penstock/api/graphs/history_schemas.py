"""Response models for a mapping's history: versions, diffs, and the tree of snapshots and
instances."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.api.graphs.definition_schemas import EdgeBody, NodeBody, shown_edges, shown_nodes
from penstock.api.pagination import Page
from penstock.graphs.mappings.diff import EntityChange, MappingDiff
from penstock.graphs.mappings.model import MappingVersion, VersionSummary
from penstock.graphs.mappings.tree import MappingTree, SnapshotBranch, VersionBranch
from penstock.kit.json_value import JsonObject


class VersionListed(BaseModel):
    mapping_id: int
    version: int
    change_description: str | None
    created_at: datetime
    created_by: str
    node_count: int
    edge_type_count: int
    snapshot_count: int


class VersionDetail(BaseModel):
    mapping_id: int
    version: int
    change_description: str | None
    created_at: datetime
    created_by: str
    node_definitions: list[NodeBody]
    edge_definitions: list[EdgeBody]


class Changed(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    change_type: Literal["added", "removed", "modified"]
    fields_changed: list[str]
    before: JsonObject | None = Field(serialization_alias="from")
    after: JsonObject | None = Field(serialization_alias="to")


class NodeChanged(Changed):
    label: str


class EdgeChanged(Changed):
    type: str
    from_node: str
    to_node: str


class DiffSummary(BaseModel):
    nodes_added: int
    nodes_removed: int
    nodes_modified: int
    edges_added: int
    edges_removed: int
    edges_modified: int


class DiffChanges(BaseModel):
    nodes: list[NodeChanged]
    edges: list[EdgeChanged]


class Diff(BaseModel):
    mapping_id: int
    from_version: int
    to_version: int
    summary: DiffSummary
    changes: DiffChanges


class TreeInstance(BaseModel):
    id: int
    name: str
    status: str


class TreeSnapshot(BaseModel):
    id: int
    name: str
    status: str
    created_at: datetime
    instance_count: int
    instances: list[TreeInstance]


class TreeVersion(BaseModel):
    version: int
    change_description: str | None
    created_at: datetime
    created_by: str
    snapshot_count: int
    snapshots: list[TreeSnapshot]


class TreeTotals(BaseModel):
    version_count: int
    snapshot_count: int
    instance_count: int


class Tree(BaseModel):
    id: int
    name: str
    owner_username: str
    current_version: int
    versions: list[TreeVersion]
    totals: TreeTotals


class VersionQuery(Page):
    sort_by: Literal["created_at", "version"] = "created_at"


def listed(version: VersionSummary) -> VersionListed:
    return VersionListed(**{name: getattr(version, name) for name in VersionListed.model_fields})


def version_detail(version: MappingVersion) -> VersionDetail:
    return VersionDetail(
        mapping_id=version.mapping_id,
        version=version.version,
        change_description=version.change_description,
        created_at=version.created_at,
        created_by=version.created_by,
        node_definitions=shown_nodes(version.node_definitions),
        edge_definitions=shown_edges(version.edge_definitions),
    )


def diffed(diff: MappingDiff) -> Diff:
    return Diff(
        mapping_id=diff.mapping_id,
        from_version=diff.from_version,
        to_version=diff.to_version,
        summary=DiffSummary(**diff.summary()),
        changes=DiffChanges(
            nodes=[NodeChanged.model_validate(_changed(change)) for change in diff.nodes],
            edges=[EdgeChanged.model_validate(_changed(change)) for change in diff.edges],
        ),
    )


def tree(mapping_tree: MappingTree, *, include_instances: bool) -> Tree:
    return Tree(
        id=mapping_tree.mapping.mapping_id,
        name=mapping_tree.mapping.name,
        owner_username=mapping_tree.mapping.owner_username,
        current_version=mapping_tree.mapping.current_version,
        versions=[_version(version, include_instances) for version in mapping_tree.versions],
        totals=TreeTotals(
            version_count=len(mapping_tree.versions),
            snapshot_count=len(mapping_tree.snapshots),
            instance_count=mapping_tree.instance_count,
        ),
    )


def _changed(change: EntityChange) -> dict[str, object]:
    return {
        **change.name,
        "change_type": change.change_type,
        "fields_changed": list(change.fields_changed),
        "before": change.before,
        "after": change.after,
    }


def _version(branch: VersionBranch, include_instances: bool) -> TreeVersion:
    return TreeVersion(
        version=branch.version,
        change_description=branch.change_description,
        created_at=branch.created_at,
        created_by=branch.created_by,
        snapshot_count=len(branch.snapshots),
        snapshots=[_snapshot(snapshot, include_instances) for snapshot in branch.snapshots],
    )


def _snapshot(branch: SnapshotBranch, include_instances: bool) -> TreeSnapshot:
    leaves = branch.instances if include_instances else ()
    return TreeSnapshot(
        id=branch.snapshot_id,
        name=branch.name,
        status=branch.status,
        created_at=branch.created_at,
        instance_count=len(branch.instances),
        instances=[
            TreeInstance(id=leaf.instance_id, name=leaf.name, status=leaf.status) for leaf in leaves
        ],
    )
