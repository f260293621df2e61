"""Request and response models of mappings."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from penstock.api.graphs.definition_schemas import (
    EdgeBody,
    Edges,
    NodeBody,
    Nodes,
    Problem,
    shown_edges,
    shown_nodes,
    shown_problems,
)
from penstock.api.pagination import Moment, Page
from penstock.graphs import duration
from penstock.graphs.mappings.catalog import MAX_TABLES, Scope
from penstock.graphs.mappings.columns import Problem as FoundProblem
from penstock.graphs.mappings.inference import Inferred
from penstock.graphs.mappings.model import MappingFilter, MappingRecord, MappingVersion, SortKey
from penstock.graphs.mappings.repository import MAX_CHANGE
from penstock.graphs.mappings.service import ChangedFields, Written
from penstock.graphs.snapshots.repository import MAX_DESCRIPTION, MAX_NAME
from penstock.jobs.http_bodies import Body, Id, Text, Whole

Title = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME, examples=["Customers and what they buy"])
]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION)]
Reason = Annotated[
    str, Field(min_length=1, max_length=MAX_CHANGE, examples=["Added the age of customers"])
]
Span = Annotated[str, Field(max_length=100, description="An ISO 8601 duration.", examples=["P7D"])]
SourceRef = Annotated[Id, Field(description="Default: the default source.", examples=[1])]


class NewMapping(Body):
    name: Title
    description: Description | None = None
    node_definitions: Nodes
    edge_definitions: Edges | None = None
    data_source_id: SourceRef | None = None
    ttl: Span | None = None
    inactivity_timeout: Span | None = None


class ChangedMapping(Body):
    """Omitted fields keep their values. Changed definitions create a new version; identical ones do
    not."""

    change_description: Reason
    name: Title | None = None
    description: Description | None = None
    node_definitions: Nodes | None = None
    edge_definitions: Edges | None = None
    data_source_id: SourceRef | None = None
    expected_version: (
        Annotated[Whole, Field(ge=1, description="The version that the change is based on.")] | None
    ) = None

    def fields(self) -> ChangedFields:
        """Null clears a description; a name and a source cannot be cleared."""
        fields = ChangedFields()
        if self.name is not None:
            fields["name"] = self.name
        if "description" in self.model_fields_set:
            fields["description"] = self.description
        if self.data_source_id is not None:
            fields["data_source_id"] = self.data_source_id
        return fields


class CopyBody(Body):
    name: Title


class LifecycleBody(Body):
    """Omitted fields keep their values; null clears one."""

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
    owner_username: str = Field(examples=["ann"])
    name: str = Field(examples=["Customers and what they buy"])
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
    warnings: list[Problem] = Field(
        description="What could not be checked because the source was unreachable."
    )


class InferBody(Body):
    """Which tables: by default all of the schema; the default schema is the only or the usual
    one."""

    data_source_id: SourceRef | None = None
    catalog: Annotated[Text, Field(min_length=1, examples=["warehouse"])] | None = None
    schema_name: Annotated[Text, Field(min_length=1)] | None = Field(
        None, alias="schema", examples=["main"]
    )
    tables: (
        Annotated[
            list[Annotated[Text, Field(min_length=1)]], Field(min_length=1, max_length=MAX_TABLES)
        ]
        | None
    ) = None

    def scope(self) -> Scope:
        tables = None if self.tables is None else tuple(self.tables)
        return Scope(catalog=self.catalog, schema=self.schema_name, tables=tables)


class Proposed(BaseModel):
    """A proposed mapping, ready to be sent to POST /api/mappings, with warnings."""

    data_source_id: int
    node_definitions: list[NodeBody]
    edge_definitions: list[EdgeBody]
    warnings: list[Problem] = Field(description="What was guessed or omitted.")


class Validation(BaseModel):
    valid: bool
    problems: list[Problem]
    warnings: list[Problem]


class Deleted(BaseModel):
    id: int = Field(examples=[1])
    deleted: Literal[True] = True


class MappingQuery(Page):
    sort_by: SortKey = "created_at"
    owner: Text | None = None
    search: (
        Annotated[Text, Field(description="Part of a name or description, case-insensitive.")]
        | None
    ) = None
    created_after: Moment | None = None
    created_before: Moment | None = None

    def filter(self) -> MappingFilter:
        return MappingFilter(
            owner=self.owner,
            search=self.search or None,
            created_after=self.created_after,
            created_before=self.created_before,
        )


def span(value: timedelta | None) -> str | None:
    return None if value is None else duration.text(value)


def shown(record: MappingRecord) -> Mapping:
    return Mapping(**_summary(record))


def detail(
    record: MappingRecord, version: MappingVersion, warnings: Iterable[FoundProblem] = ()
) -> MappingDetail:
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


def proposed(proposal: Inferred) -> Proposed:
    return Proposed(
        data_source_id=proposal.source.data_source_id,
        node_definitions=shown_nodes(proposal.definitions.nodes),
        edge_definitions=shown_edges(proposal.definitions.edges),
        warnings=shown_problems(proposal.notes),
    )


def _summary(record: MappingRecord) -> dict[str, object]:
    alike = {name: getattr(record, name) for name in Mapping.model_fields if name != "id"}
    spans = {"ttl": span(record.ttl), "inactivity_timeout": span(record.inactivity_timeout)}
    return alike | spans | {"id": record.mapping_id}
