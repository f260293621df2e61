"""Writes mappings: validates the rules, checks the queries, and requires access to the source.

A write reads the mapping and replaces it; after a concurrent change it retries on the new state. A
caller that names the version it has seen gets a conflict instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

from penstock.accounts.role import Role
from penstock.graphs.lifetime import Lifetime
from penstock.graphs.mappings.definition import Definitions
from penstock.graphs.mappings.query_check import Verdict
from penstock.graphs.mappings.repository import MappingChanged
from penstock.graphs.mappings.rules import check, refused
from penstock.graphs.snapshots.repository import check_naming
from penstock.kit.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.graphs.mappings.columns import Problem
    from penstock.graphs.mappings.definition import EdgeDefinition, NodeDefinition
    from penstock.graphs.mappings.model import MappingRecord, MappingVersion
    from penstock.graphs.mappings.query_check import QueryCheck
    from penstock.graphs.mappings.repository import Mappings
    from penstock.graphs.mappings.source_rights import SourceRights
    from penstock.sources.repository import DataSource

TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The user who writes; `use_case` is the role for queries at Trino."""

    username: str
    role: Role
    use_case: str | None = None

    @property
    def is_admin(self) -> bool:
        return self.role >= Role.ADMIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    name: str
    definitions: Definitions
    description: str | None = None
    data_source_id: int | None = None
    lifetime: Lifetime = field(default_factory=Lifetime)


class ChangedFields(TypedDict, total=False):
    """New values of a mapping's own fields; None clears a description."""

    name: str
    description: str | None
    data_source_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Fields that `fields` lacks, and lists that are None, stay unchanged."""

    change_description: str
    fields: ChangedFields = field(default_factory=ChangedFields)
    nodes: Sequence[NodeDefinition] | None = None
    edges: Sequence[EdgeDefinition] | None = None

    def definitions(self, now: Definitions) -> Definitions:
        return Definitions(
            nodes=now.nodes if self.nodes is None else tuple(self.nodes),
            edges=now.edges if self.edges is None else tuple(self.edges),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The version or the etags that the caller has seen; None: any."""

    version: int | None = None
    etags: frozenset[str] | None = None

    def check(self, read: MappingRecord) -> None:
        if self.version not in (None, read.current_version):
            raise _outdated(read)
        if self.etags is not None and not self.etags & {"*", read.etag, str(read.current_version)}:
            raise _outdated(read)


ANYTHING = Expected()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    mapping: MappingRecord
    version: MappingVersion
    warnings: tuple[Problem, ...] = ()


class MappingService:
    def __init__(self, mappings: Mappings, rights: SourceRights, queries: QueryCheck) -> None:
        self._mappings = mappings
        self._rights = rights
        self._queries = queries

    async def create(self, draft: Draft, author: Author) -> Written:
        check_naming(draft.name, draft.description)
        check(draft.definitions)
        source = await self._usable_source(draft.data_source_id, author)
        verdict = _raise_problems(
            await self._queries.judge(
                draft.definitions, source, by=author.username, role=author.use_case
            )
        )
        mapping = await self._mappings.add(
            owner=author.username,
            name=draft.name,
            description=draft.description,
            definitions=draft.definitions,
            data_source_id=source.data_source_id,
            ttl=draft.lifetime.ttl,
            inactivity_timeout=draft.lifetime.inactivity_timeout,
        )
        return await self._written(mapping, verdict)

    async def change(
        self, mapping_id: int, change: Change, author: Author, *, expected: Expected = ANYTHING
    ) -> Written:
        checked: tuple[object, Verdict] = (None, Verdict())
        for _ in range(TRIES):
            read = await self._mappings.get(mapping_id)
            expected.check(read)
            before = await self._mappings.version(mapping_id, read.current_version)
            definitions = change.definitions(before.definitions)
            now = replace(read, **change.fields)
            subject = (definitions, now.data_source_id)
            if subject not in ((before.definitions, read.data_source_id), checked[0]):
                checked = subject, await self._check_definitions(definitions, now, author)
            try:
                mapping = await self._mappings.update(
                    now,
                    read=read,
                    definitions=None if definitions == before.definitions else definitions,
                    change_description=change.change_description,
                    actor=author.username,
                )
            except MappingChanged:
                continue
            return await self._written(mapping, checked[1])
        raise _busy(mapping_id)

    async def restore(self, mapping_id: int, version: int, author: Author) -> Written:
        """Append a version with the definitions of an old one."""
        old = await self._mappings.version(mapping_id, version)
        for _ in range(TRIES):
            read = await self._mappings.get(mapping_id)
            if author.username != read.owner_username:
                await self._usable_source(read.data_source_id, author)
            try:
                mapping = await self._mappings.update(
                    read,
                    read=read,
                    definitions=old.definitions,
                    change_description=f"Restored version {version}",
                    actor=author.username,
                )
            except MappingChanged:
                continue
            return await self._written(mapping, Verdict())
        raise _busy(mapping_id)

    async def copy(self, mapping_id: int, name: str, author: Author) -> Written:
        """Copy the current version into a new mapping of the author."""
        read = await self._mappings.get(mapping_id)
        version = await self._mappings.version(mapping_id, read.current_version)
        source = await self._usable_source(read.data_source_id, author)
        mapping = await self._mappings.add(
            owner=author.username,
            name=name,
            description=read.description,
            definitions=version.definitions,
            data_source_id=source.data_source_id,
            ttl=read.ttl,
            inactivity_timeout=read.inactivity_timeout,
            change_description=f"Copied from mapping {mapping_id}, version {version.version}",
        )
        return await self._written(mapping, Verdict())

    async def judge(
        self, definitions: Definitions, data_source_id: int | None, author: Author
    ) -> Verdict:
        """Check definitions without writing them; PermissionDenied if the author may not use the
        source."""
        source = await self._usable_source(data_source_id, author)
        return await self._queries.judge(
            definitions, source, by=author.username, role=author.use_case
        )

    async def _usable_source(self, data_source_id: int | None, author: Author) -> DataSource:
        source = await self._rights.source(data_source_id)
        await self._rights.check(source, author.username, is_admin=author.is_admin)
        return source

    async def _check_definitions(
        self, definitions: Definitions, now: MappingRecord, author: Author
    ) -> Verdict:
        check(definitions)
        source = await self._rights.source(now.data_source_id)
        await self._rights.check(source, author.username, is_admin=author.is_admin)
        if author.username != now.owner_username:
            await self._rights.check(source, now.owner_username)
        return _raise_problems(
            await self._queries.judge(definitions, source, by=author.username, role=author.use_case)
        )

    async def _written(self, mapping: MappingRecord, verdict: Verdict) -> Written:
        version = await self._mappings.version(mapping.mapping_id, mapping.current_version)
        return Written(mapping=mapping, version=version, warnings=verdict.warnings)


def _raise_problems(verdict: Verdict) -> Verdict:
    if verdict.problems:
        raise refused(verdict.problems)
    return verdict


def _outdated(read: MappingRecord) -> Conflict:
    return Conflict(
        f"Mapping {read.mapping_id} was changed since you read it;"
        f" it is at version {read.current_version}.",
        hint="Read it again, and apply your change to the current version.",
        current_version=read.current_version,
    )


def _busy(mapping_id: int) -> Conflict:
    return Conflict(
        f"Mapping {mapping_id} has too many concurrent changes.", hint="Try again later."
    )
