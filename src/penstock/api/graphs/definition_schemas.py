"""The definitions of a mapping as they are sent and shown.

The bounds in the description are kept by `graphs.rules`, which names the entity and says what to
write instead; here only the shape is checked, and sizes at which naming each entity would take
long.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Annotated

from pydantic import BaseModel, Field

from penstock.graphs.mappings import definition
from penstock.graphs.mappings.columns import TYPES
from penstock.graphs.mappings.columns import Problem as FoundProblem
from penstock.graphs.mappings.rules import KEY_TYPES, MAX_EDGES, MAX_NODES, MAX_PROPERTIES, MAX_SQL
from penstock.jobs.http_bodies import Body

FAR_PAST = 4
"""A definition that exceeds a limit of `graphs.rules` by this factor is refused without naming its
entities."""
LONGEST_NAME = 4096
_NAME = {"pattern": "^[A-Za-z][A-Za-z0-9_]{0,63}$"}
_UPPER = {"pattern": "^[A-Z][A-Z0-9_]{0,63}$"}
_SQL = {"minLength": 1, "maxLength": MAX_SQL}


def _most(count: int) -> dict[str, int]:
    return {"maxItems": count}


Label = Annotated[
    str, Field(max_length=LONGEST_NAME, examples=["Customer"], json_schema_extra={**_NAME})
]
EdgeType = Annotated[
    str, Field(max_length=LONGEST_NAME, examples=["KNOWS"], json_schema_extra={**_UPPER})
]
Name = Annotated[str, Field(max_length=LONGEST_NAME, examples=["id"], json_schema_extra={**_NAME})]
PropertyType = Annotated[
    str,
    Field(max_length=LONGEST_NAME, examples=["STRING"], json_schema_extra={"enum": list(TYPES)}),
]
KeyType = Annotated[
    str,
    Field(max_length=LONGEST_NAME, examples=["INT64"], json_schema_extra={"enum": list(KEY_TYPES)}),
]
Sql = Annotated[
    str,
    Field(
        max_length=FAR_PAST * MAX_SQL,
        description="One SELECT, in the source's dialect.",
        json_schema_extra={**_SQL},
    ),
]


class PropertyBody(Body):
    name: Annotated[Name, Field(examples=["name"])]
    type: PropertyType


class PrimaryKeyBody(Body):
    name: Name
    type: KeyType


Properties = Annotated[
    list[PropertyBody],
    Field(max_length=FAR_PAST * MAX_PROPERTIES, json_schema_extra={**_most(MAX_PROPERTIES)}),
]


class NodeBody(Body):
    """A node label, and the query that returns its key and properties, in this order."""

    label: Label
    sql: Annotated[Sql, Field(examples=["SELECT id, name FROM customers"])]
    primary_key: PrimaryKeyBody
    properties: Properties = Field(default_factory=list)

    def value(self) -> definition.NodeDefinition:
        return definition.NodeDefinition(
            label=self.label,
            sql=self.sql,
            primary_key=definition.Property(name=self.primary_key.name, type=self.primary_key.type),
            properties=_properties(self.properties),
        )


class EdgeBody(Body):
    """An edge type between two labels, and the query that returns both keys and the properties, in
    this order."""

    type: EdgeType
    from_node: Label
    to_node: Label
    sql: Annotated[Sql, Field(examples=["SELECT a, b FROM friends"])]
    from_key: Annotated[Name, Field(examples=["a"])]
    to_key: Annotated[Name, Field(examples=["b"])]
    properties: Properties = Field(default_factory=list)

    def value(self) -> definition.EdgeDefinition:
        plain = self.model_dump(exclude={"properties"})
        return definition.EdgeDefinition(**plain, properties=_properties(self.properties))


Nodes = Annotated[
    list[NodeBody],
    Field(max_length=FAR_PAST * MAX_NODES, json_schema_extra={"minItems": 1, **_most(MAX_NODES)}),
]
Edges = Annotated[
    list[EdgeBody], Field(max_length=FAR_PAST * MAX_EDGES, json_schema_extra={**_most(MAX_EDGES)})
]


class Problem(BaseModel):
    entity: str = Field(examples=["Node Customer"])
    column: str = Field(examples=["name"])
    problem: str
    suggestion: str


def definitions(nodes: Iterable[NodeBody], edges: Iterable[EdgeBody]) -> definition.Definitions:
    return definition.Definitions(
        nodes=tuple(node.value() for node in nodes), edges=tuple(edge.value() for edge in edges)
    )


def shown_nodes(nodes: Sequence[definition.NodeDefinition]) -> list[NodeBody]:
    return [NodeBody.model_validate(asdict(node)) for node in nodes]


def shown_edges(edges: Sequence[definition.EdgeDefinition]) -> list[EdgeBody]:
    return [EdgeBody.model_validate(asdict(edge)) for edge in edges]


def shown_problems(problems: Iterable[FoundProblem]) -> list[Problem]:
    return [Problem(**asdict(problem)) for problem in problems]


def _properties(bodies: Iterable[PropertyBody]) -> tuple[definition.Property, ...]:
    return tuple(definition.Property(name=prop.name, type=prop.type) for prop in bodies)
