"""How mappings are written: by the rules, with queries that were checked, on a source that the
owner may use.

A writer reads the mapping, makes the new one out of it and puts it in its place; when somebody was
faster, this begins anew with what they wrote. Whoever names the version that they have seen is
refused instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.accounts.role import Role
from penstock.graphs.lifetime import Lifetime
from penstock.graphs.mappings.definition import Definitions
from penstock.graphs.mappings.query_check import Verdict
from penstock.graphs.mappings.repository import Moved
from penstock.graphs.mappings.rules import check, refused
from penstock.graphs.snapshots.repository import check_naming
from penstock.kit.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    """Who writes; `use_case` is the role under which a Trino is asked."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`told` has what is to be set of `name`, `description` and `data_source_id`; a list that is
    None stays."""

    change_description: str
    told: Mapping[str, Any] = field(default_factory=dict)
    nodes: Sequence[NodeDefinition] | None = None
    edges: Sequence[EdgeDefinition] | None = None

    def definitions(self, now: Definitions) -> Definitions:
        return Definitions(
            nodes=now.nodes if self.nodes is None else tuple(self.nodes),
            edges=now.edges if self.edges is None else tuple(self.edges),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the writer has seen: a version, or a mapping exactly as it was shown. None: whatever is
    there."""

    version: int | None = None
    etags: frozenset[str] | None = None

    def check(self, read: MappingRecord) -> None:
        if self.version not in (None, read.current_version):
            raise _lost(read)
        if self.etags is not None and not self.etags & {"*", read.etag, str(read.current_version)}:
            raise _lost(read)


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
        source = await self._usable(draft.data_source_id, author)
        verdict = _passed(
            await self._queries.judge(
                draft.definitions, source, by=author.username, role=author.use_case
            )
        )
        made = await self._mappings.add(
            owner=author.username,
            name=draft.name,
            description=draft.description,
            definitions=draft.definitions,
            data_source_id=source.data_source_id,
            ttl=draft.lifetime.ttl,
            inactivity_timeout=draft.lifetime.inactivity_timeout,
        )
        return await self._written(made, verdict)

    async def change(
        self, mapping_id: int, change: Change, author: Author, *, expected: Expected = ANYTHING
    ) -> Written:
        judged: tuple[object, Verdict] = (None, Verdict())
        for _ in range(TRIES):
            read = await self._mappings.get(mapping_id)
            expected.check(read)
            before = await self._mappings.version(mapping_id, read.current_version)
            definitions = change.definitions(before.definitions)
            now = replace(read, **change.told)
            subject = (definitions, now.data_source_id)
            if subject not in ((before.definitions, read.data_source_id), judged[0]):
                judged = subject, await self._allowed(definitions, now, author)
            try:
                made = await self._mappings.update(
                    now,
                    read=read,
                    definitions=None if definitions == before.definitions else definitions,
                    change_description=change.change_description,
                    actor=author.username,
                )
            except Moved:
                continue
            return await self._written(made, judged[1])
        raise _busy(mapping_id)

    async def restore(self, mapping_id: int, version: int, author: Author) -> Written:
        """Append a version that says what an old one said, whatever the current one says."""
        old = await self._mappings.version(mapping_id, version)
        for _ in range(TRIES):
            read = await self._mappings.get(mapping_id)
            if author.username != read.owner_username:
                await self._usable(read.data_source_id, author)
            try:
                made = await self._mappings.update(
                    read,
                    read=read,
                    definitions=old.definitions,
                    change_description=f"Restored version {version}",
                    actor=author.username,
                )
            except Moved:
                continue
            return await self._written(made, Verdict())
        raise _busy(mapping_id)

    async def copy(self, mapping_id: int, name: str, author: Author) -> Written:
        """The current version, as the first one of a mapping of the author's own."""
        read = await self._mappings.get(mapping_id)
        version = await self._mappings.version(mapping_id, read.current_version)
        source = await self._usable(read.data_source_id, author)
        made = await self._mappings.add(
            owner=author.username,
            name=name,
            description=read.description,
            definitions=version.definitions,
            data_source_id=source.data_source_id,
            ttl=read.ttl,
            inactivity_timeout=read.inactivity_timeout,
            change_description=f"Copied from mapping {mapping_id}, version {version.version}",
        )
        return await self._written(made, Verdict())

    async def judge(
        self, definitions: Definitions, data_source_id: int | None, author: Author
    ) -> Verdict:
        """What is wrong with definitions, without writing them; refused where the author may not
        use the source."""
        source = await self._usable(data_source_id, author)
        return await self._queries.judge(
            definitions, source, by=author.username, role=author.use_case
        )

    async def _usable(self, data_source_id: int | None, author: Author) -> DataSource:
        source = await self._rights.source(data_source_id)
        await self._rights.check(source, author.username, is_admin=author.is_admin)
        return source

    async def _allowed(
        self, definitions: Definitions, now: MappingRecord, author: Author
    ) -> Verdict:
        check(definitions)
        source = await self._rights.source(now.data_source_id)
        await self._rights.check(source, author.username, is_admin=author.is_admin)
        if author.username != now.owner_username:
            await self._rights.check(source, now.owner_username)
        return _passed(
            await self._queries.judge(definitions, source, by=author.username, role=author.use_case)
        )

    async def _written(self, made: MappingRecord, verdict: Verdict) -> Written:
        version = await self._mappings.version(made.mapping_id, made.current_version)
        return Written(mapping=made, version=version, warnings=verdict.warnings)


def _passed(verdict: Verdict) -> Verdict:
    if verdict.problems:
        raise refused(verdict.problems)
    return verdict


def _lost(read: MappingRecord) -> Conflict:
    return Conflict(
        f"Mapping {read.mapping_id} was changed since you read it; it is at version {read.current_version}.",
        hint="Read it again, and make your change to what is there now.",
        current_version=read.current_version,
    )


def _busy(mapping_id: int) -> Conflict:
    return Conflict(f"Mapping {mapping_id} is being changed by many at once.", hint="Try again.")
