"""What changed between two versions of a mapping, entity by entity."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from penstock.graphs.errors import SameVersion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.graphs.mappings.definition import EdgeDefinition, NodeDefinition
    from penstock.graphs.mappings.model import MappingVersion

ChangeType: TypeAlias = Literal["added", "removed", "modified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChange:
    """`name` is what identifies the entity: its label, or its type and the labels at its ends."""

    name: Mapping[str, str]
    change_type: ChangeType
    fields_changed: tuple[str, ...]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingDiff:
    mapping_id: int
    from_version: int
    to_version: int
    nodes: tuple[EntityChange, ...]
    edges: tuple[EntityChange, ...]

    def summary(self) -> dict[str, int]:
        found = Counter(
            f"{kind}_{each.change_type}"
            for kind, changes in (("nodes", self.nodes), ("edges", self.edges))
            for each in changes
        )
        kinds = ("added", "removed", "modified")
        return {
            name: found[name] for name in (f"{e}_{k}" for e in ("nodes", "edges") for k in kinds)
        }


def diff(before: MappingVersion, after: MappingVersion) -> MappingDiff:
    if before.version == after.version:
        raise SameVersion(
            f"Version {before.version} differs in nothing from itself.", hint="Name two versions."
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
    """Those that are there still or are gone, in their old order; then those that are new."""
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old != new:
            yield _change(
                None if old is None else asdict(old), None if new is None else asdict(new), name
            )


def _change(
    old: dict[str, Any] | None, new: dict[str, Any] | None, name: tuple[str, ...]
) -> EntityChange:
    known = new or old or {}
    both = old is not None and new is not None
    return EntityChange(
        name={each: known[each] for each in name},
        change_type="modified" if both else "removed" if new is None else "added",
        fields_changed=tuple(
            each for each in known if old is not None and new is not None and old[each] != new[each]
        ),
        before=old,
        after=new,
    )
