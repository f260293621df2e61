"""Infers a mapping from a schema; entities whose queries fail the check are left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.graphs.mappings.catalog import Scope, survey
from penstock.graphs.mappings.proposal import propose
from penstock.graphs.snapshots.payloads import Entity
from penstock.kit.errors import InvalidInput
from penstock.sources.registry import DRIVERS

if TYPE_CHECKING:
    from penstock.graphs.mappings.columns import Problem
    from penstock.graphs.mappings.definition import Definitions
    from penstock.graphs.mappings.query_check import QueryCheck
    from penstock.graphs.mappings.service import Author
    from penstock.graphs.mappings.source_rights import SourceRights
    from penstock.sources.repository import DataSource, DataSources


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    source: DataSource
    definitions: Definitions
    notes: tuple[Problem, ...]


class Inference:
    def __init__(self, sources: DataSources, rights: SourceRights, queries: QueryCheck) -> None:
        self._sources = sources
        self._rights = rights
        self._queries = queries

    async def infer(self, data_source_id: int | None, scope: Scope, author: Author) -> Inferred:
        source = await self._rights.source(data_source_id)
        await self._rights.check(source, author.username, is_admin=author.is_admin)
        tables = await self._sources.ask(
            source.data_source_id,
            lambda opened: survey(opened, source.type, scope),
            by=author.username,
            role=author.use_case,
        )
        proposal = propose(tables, DRIVERS[source.type].dialect)
        if not proposal.definitions.nodes:
            raise InvalidInput("None of these tables has a key, so there is no node to propose.")
        verdict = await self._queries.judge(
            proposal.definitions, source, by=author.username, role=author.use_case
        )
        return Inferred(
            source=source,
            definitions=_without(
                proposal.definitions, {problem.entity for problem in verdict.problems}
            ),
            notes=(*proposal.notes, *verdict.problems, *verdict.warnings),
        )


def _without(definitions: Definitions, entities: set[str]) -> Definitions:
    nodes = [
        node
        for node in definitions.nodes
        if str(Entity(job_type="node", name=node.label)) not in entities
    ]
    labels = {node.label for node in nodes}
    edges = [
        edge
        for edge in definitions.edges
        if str(definitions.entity(edge)) not in entities
        and {edge.from_node, edge.to_node} <= labels
    ]
    return replace(definitions, nodes=tuple(nodes), edges=tuple(edges))
