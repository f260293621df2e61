"""Diff of two versions of a mapping, per entity."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.graphs.errors import SameVersion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.graphs.mappings.definition import EdgeDefinition, NodeDefinition
    from penstock.graphs.mappings.model import MappingVersion
    from penstock.kit.json_value import JsonObject

ChangeType: TypeAlias = Literal["added", "removed", "modified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChange:
    """`name` identifies the entity: its label, or its type and the labels of its nodes."""

    name: Mapping[str, str]
    change_type: ChangeType
    fields_changed: tuple[str, ...]
    before: JsonObject | None
    after: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingDiff:
    mapping_id: int
    from_version: int
    to_version: int
    nodes: tuple[EntityChange, ...]
    edges: tuple[EntityChange, ...]

    def summary(self) -> dict[str, int]:
        counts = Counter(
            f"{kind}_{change.change_type}"
            for kind, changes in (("nodes", self.nodes), ("edges", self.edges))
            for change in changes
        )
        kinds = ("added", "removed", "modified")
        return {
            name: counts[name] for name in (f"{e}_{k}" for e in ("nodes", "edges") for k in kinds)
        }


def diff(before: MappingVersion, after: MappingVersion) -> MappingDiff:
    if before.version == after.version:
        raise SameVersion(
            f"Version {before.version} cannot be compared with itself.",
            hint="Name two different versions.",
        )
    return MappingDiff(
        mapping_id=before.mapping_id,
        from_version=before.version,
        to_version=after.version,
        nodes=tuple(_changes(_nodes(before), _nodes(after), ("label",))),
        edges=tuple(_changes(_edges(before), _edges(after), ("type", "from_node", "to_node"))),
    )


def _nodes(version: MappingVersion) -> Mapping[object, NodeDefinition]:
    return {node.label: node for node in version.node_definitions}


def _edges(version: MappingVersion) -> Mapping[object, EdgeDefinition]:
    return {edge.key: edge for edge in version.edge_definitions}


def _changes(
    before: Mapping[object, NodeDefinition | EdgeDefinition],
    after: Mapping[object, NodeDefinition | EdgeDefinition],
    name: tuple[str, ...],
) -> Iterator[EntityChange]:
    """Modified and removed entities in their old order, then added ones."""
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old != new:
            yield _change(
                None if old is None else asdict(old), None if new is None else asdict(new), name
            )


def _change(old: JsonObject | None, new: JsonObject | None, name: tuple[str, ...]) -> EntityChange:
    entity = new or old or {}
    both = old is not None and new is not None
    return EntityChange(
        name={field: str(entity[field]) for field in name},
        change_type="modified" if both else "removed" if new is None else "added",
        fields_changed=tuple(
            field
            for field in entity
            if old is not None and new is not None and old[field] != new[field]
        ),
        before=old,
        after=new,
    )
