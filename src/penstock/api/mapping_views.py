"""Mappings as they are sent and shown."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.api.definition_views import (
    EdgeBody,
    Edges,
    NodeBody,
    Nodes,
    Problem,
    shown_edges,
    shown_nodes,
    shown_problems,
)
from penstock.api.paging import Moment, Page
from penstock.graphs import duration
from penstock.graphs.authoring import Written
from penstock.graphs.catalogue import MAX_TABLES, Scope
from penstock.graphs.columns import Problem as FoundProblem
from penstock.graphs.inference import Inferred
from penstock.graphs.mapping import MAX_CHANGE, MappingFilter, MappingRecord, MappingVersion, SortKey, VersionSummary
from penstock.graphs.mapping_diff import EntityChange, MappingDiff
from penstock.graphs.mapping_tree import MappingTree, SnapshotBranch, VersionBranch
from penstock.graphs.store import MAX_DESCRIPTION, MAX_NAME
from penstock.jobs.bodies import Body, Id, Text, Whole

Title = Annotated[str, Field(min_length=1, max_length=MAX_NAME, examples=["Customers and what they buy"])]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION)]
Reason = Annotated[str, Field(min_length=1, max_length=MAX_CHANGE, examples=["Added the age of customers"])]
Span = Annotated[str, Field(max_length=100, description="An ISO 8601 duration.", examples=["P7D"])]
SourceRef = Annotated[Id, Field(description="Left out: the default source.", examples=[1])]


class NewMapping(Body):
    name: Title
    description: Description | None = None
    node_definitions: Nodes
    edge_definitions: Edges | None = None
    data_source_id: SourceRef | None = None
    ttl: Span | None = None
    inactivity_timeout: Span | None = None


class ChangedMapping(Body):
    """What is left out stays as it is. Changed definitions make a new version; identical ones do not."""

    change_description: Reason
    name: Title | None = None
    description: Description | None = None
    node_definitions: Nodes | None = None
    edge_definitions: Edges | None = None
    data_source_id: SourceRef | None = None
    expected_version: Annotated[Whole, Field(ge=1, description="The version that the change was made to.")] | None = (
        None
    )

    def told(self) -> dict[str, Any]:
        """A description can be taken away with null; a name and a source cannot."""
        given = self.model_dump(include={"name", "description", "data_source_id"}, exclude_unset=True)
        return {name: value for name, value in given.items() if value is not None or name == "description"}


class CopyBody(Body):
    name: Title


class LifecycleBody(Body):
    """What is left out stays as it is; null clears."""

    ttl: Span | None = None
    inactivity_timeout: Span | None = None

    def told(self) -> dict[str, str | None]:
        return self.model_dump(exclude_unset=True)


class ValidateBody(Body):
    node_definitions: Nodes
    edge_definitions: Edges | None = None
    data_source_id: SourceRef | None = None


class Mapping(BaseModel):
    id: int = Field(examples=[1])
    owner_username: str
    name: str
    description: str | None
    current_version: int
    created_at: datetime
    updated_at: datetime
    ttl: str | None
    inactivity_timeout: str | None
    snapshot_count: int
    node_count: int
    edge_type_count: int
    data_source_id: int | None


class MappingDetail(Mapping):
    version: int
    node_definitions: list[NodeBody]
    edge_definitions: list[EdgeBody]
    change_description: str | None
    version_created_at: datetime
    version_created_by: str
    warnings: list[Problem] = Field(description="What could not be checked, as the source did not answer.")


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


class InferBody(Body):
    """Which tables: without names all of the schema, without a schema the only or the usual one."""

    data_source_id: SourceRef | None = None
    catalog: Annotated[Text, Field(min_length=1, examples=["warehouse"])] | None = None
    schema_name: Annotated[Text, Field(min_length=1)] | None = Field(None, alias="schema", examples=["main"])
    tables: Annotated[list[Annotated[Text, Field(min_length=1)]], Field(min_length=1, max_length=MAX_TABLES)] | None = (
        None
    )

    def scope(self) -> Scope:
        tables = None if self.tables is None else tuple(self.tables)
        return Scope(catalog=self.catalog, schema=self.schema_name, tables=tables)


class Proposed(BaseModel):
    """What can be sent to create a mapping, and what to know of it before."""

    data_source_id: int
    node_definitions: list[NodeBody]
    edge_definitions: list[EdgeBody]
    warnings: list[Problem] = Field(description="What was guessed or left out.")


class Validation(BaseModel):
    valid: bool
    problems: list[Problem]
    warnings: list[Problem]


class Deleted(BaseModel):
    id: int = Field(examples=[1])
    deleted: Literal[True] = True


class Changed(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    change_type: Literal["added", "removed", "modified"]
    fields_changed: list[str]
    before: dict[str, Any] | None = Field(serialization_alias="from")
    after: dict[str, Any] | None = Field(serialization_alias="to")


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


class MappingQuery(Page):
    sort_by: SortKey = "created_at"
    owner: Text | None = None
    search: Annotated[Text, Field(description="Part of a name or a description, in any case.")] | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None

    def filter(self) -> MappingFilter:
        return MappingFilter(
            owner=self.owner,
            search=self.search or None,
            created_after=self.created_after,
            created_before=self.created_before,
        )


class VersionQuery(Page):
    sort_by: Literal["created_at", "version"] = "created_at"


def span(value: timedelta | None) -> str | None:
    return None if value is None else duration.text(value)


def shown(record: MappingRecord) -> Mapping:
    return Mapping(**_summary(record))


def detail(record: MappingRecord, version: MappingVersion, warnings: Iterable[FoundProblem] = ()) -> MappingDetail:
    return MappingDetail(
        **_summary(record),
        version=version.version,
        node_definitions=shown_nodes(version.node_definitions),
        edge_definitions=shown_edges(version.edge_definitions),
        change_description=version.change_description,
        version_created_at=version.created_at,
        version_created_by=version.created_by,
        warnings=shown_problems(warnings),
    )


def written(result: Written) -> MappingDetail:
    return detail(result.mapping, result.version, result.warnings)


def proposed(found: Inferred) -> Proposed:
    return Proposed(
        data_source_id=found.source.data_source_id,
        node_definitions=shown_nodes(found.definitions.nodes),
        edge_definitions=shown_edges(found.definitions.edges),
        warnings=shown_problems(found.notes),
    )


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


def diffed(found: MappingDiff) -> Diff:
    return Diff(
        mapping_id=found.mapping_id,
        from_version=found.from_version,
        to_version=found.to_version,
        summary=DiffSummary(**found.summary()),
        changes=DiffChanges(
            nodes=[NodeChanged(**_changed(each)) for each in found.nodes],
            edges=[EdgeChanged(**_changed(each)) for each in found.edges],
        ),
    )


def tree(found: MappingTree, *, include_instances: bool) -> Tree:
    return Tree(
        id=found.mapping.mapping_id,
        name=found.mapping.name,
        owner_username=found.mapping.owner_username,
        current_version=found.mapping.current_version,
        versions=[_version(each, include_instances) for each in found.versions],
        totals=TreeTotals(
            version_count=len(found.versions),
            snapshot_count=len(found.snapshots),
            instance_count=found.instance_count,
        ),
    )


def _summary(record: MappingRecord) -> dict[str, Any]:
    alike = {name: getattr(record, name) for name in Mapping.model_fields if name != "id"}
    spans = {"ttl": span(record.ttl), "inactivity_timeout": span(record.inactivity_timeout)}
    return alike | spans | {"id": record.mapping_id}


def _changed(each: EntityChange) -> dict[str, Any]:
    return {
        **each.name,
        "change_type": each.change_type,
        "fields_changed": list(each.fields_changed),
        "before": each.before,
        "after": each.after,
    }


def _version(each: VersionBranch, include_instances: bool) -> TreeVersion:
    return TreeVersion(
        version=each.version,
        change_description=each.change_description,
        created_at=each.created_at,
        created_by=each.created_by,
        snapshot_count=len(each.snapshots),
        snapshots=[_snapshot(snapshot, include_instances) for snapshot in each.snapshots],
    )


def _snapshot(each: SnapshotBranch, include_instances: bool) -> TreeSnapshot:
    leaves = each.instances if include_instances else ()
    return TreeSnapshot(
        id=each.snapshot_id,
        name=each.name,
        status=each.status,
        created_at=each.created_at,
        instance_count=len(each.instances),
        instances=[TreeInstance(id=leaf.instance_id, name=leaf.name, status=leaf.status) for leaf in leaves],
    )
