"""Mappings: what becomes a graph, in versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._async.instances import AsyncGraph, AsyncInstances
from penstock.client._async.listing import listed
from penstock.client._async.resource import AsyncResource
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.definitions import Edge, Node, definition
from penstock.client.durations import iso
from penstock.client.models import MappingInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import timedelta
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._async.transport import AsyncTransport
    from penstock.client.words import Engine, InstanceStatus


class AsyncMapping(AsyncResource):
    """A mapping as last fetched; `refresh` fetches it again."""

    def __init__(self, transport: AsyncTransport, info: MappingInfo) -> None:
        super().__init__(transport, id=info.id)
        self.info: MappingInfo = info

    @property
    def id(self) -> int:
        return self.info.id

    @property
    def name(self) -> str:
        return self.info.name

    def __repr__(self) -> str:
        return f"<Mapping {self.id} {self.name!r} v{self.info.current_version}>"

    async def refresh(self) -> AsyncMapping:
        self.info = decode(MappingInfo, await self._call("GET", "/api/mappings/{id}"))
        return self

    async def update(
        self,
        change: str,
        *,
        name: str | None = None,
        description: str | None = None,
        nodes: Sequence[Node] | None = None,
        edges: Sequence[Edge] | None = None,
        data_source: int | None = None,
    ) -> AsyncMapping:
        """Changed definitions become a new version; somebody else's change in between is a
        Conflict."""
        body = given(
            change_description=change,
            expected_version=self.info.current_version,
            name=name,
            description=description,
            node_definitions=None if nodes is None else [definition(node) for node in nodes],
            edge_definitions=None if edges is None else [definition(edge) for edge in edges],
            data_source_id=data_source,
        )
        self.info = decode(MappingInfo, await self._call("PUT", "/api/mappings/{id}", json=body))
        return self

    async def delete(self) -> shapes.Deleted:
        gone: shapes.Deleted = await self._call("DELETE", "/api/mappings/{id}")
        return gone

    async def copy(self, name: str) -> AsyncMapping:
        copied = await self._call("POST", "/api/mappings/{id}/copy", json={"name": name})
        return AsyncMapping(self._transport, decode(MappingInfo, copied))

    async def lifecycle(
        self,
        *,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> AsyncMapping:
        """How long its snapshots and instances live; None clears."""
        body = {"ttl": iso(ttl), "inactivity_timeout": iso(inactivity_timeout)}
        await self._call("PUT", "/api/mappings/{id}/lifecycle", json=body)
        return await self.refresh()

    async def versions(
        self, **filters: Unpack[shapes.MappingsVersionsFilters]
    ) -> list[shapes.VersionListed]:
        template = "/api/mappings/{id}/versions"
        return [item async for item in listed(self._transport, template, self._path, **filters)]

    async def version(self, number: int) -> shapes.VersionDetail:
        version: shapes.VersionDetail = await self._call(
            "GET", "/api/mappings/{id}/versions/{version}", version=number
        )
        return version

    async def diff(self, before: int, after: int) -> shapes.Diff:
        answer: shapes.Diff = await self._call(
            "GET", "/api/mappings/{id}/versions/{before}/diff/{after}", before=before, after=after
        )
        return answer

    async def restore(self, number: int) -> AsyncMapping:
        """A new version equal to an old one."""
        await self._call("POST", "/api/mappings/{id}/versions/{version}/restore", version=number)
        return await self.refresh()

    async def tree(
        self, *, include_instances: bool | None = None, status: InstanceStatus | str | None = None
    ) -> shapes.Tree:
        """Its versions, their snapshots and the instances of those."""
        query = {"include_instances": include_instances, "status": status}
        tree: shapes.Tree = await self._call("GET", "/api/mappings/{id}/tree", query=query)
        return tree

    async def start(
        self,
        name: str | None = None,
        *,
        version: int | None = None,
        engine: Engine | None = None,
        description: str | None = None,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
        max_snapshot_age: str | timedelta | None = None,
        cpu_cores: int | None = None,
        wait: bool = True,
        progress: bool = True,
    ) -> AsyncGraph:
        """An instance of this mapping: a graph to query. As a context manager it is terminated at
        the end."""
        return await AsyncInstances(self._transport).create(
            name or self.name,
            mapping=self.id,
            mapping_version=version,
            engine=engine,
            description=description,
            ttl=ttl,
            inactivity_timeout=inactivity_timeout,
            max_snapshot_age=max_snapshot_age,
            cpu_cores=cpu_cores,
            wait=wait,
            progress=progress,
        )


class AsyncProposal:
    """A mapping that the keys of a schema speak for; nothing is kept until it is created or
    started."""

    def __init__(self, mappings: AsyncMappings, name: str, data: shapes.Proposed) -> None:
        self._mappings = mappings
        self.name: str = name
        self.data: shapes.Proposed = data
        self.nodes: tuple[Node, ...] = tuple(
            decode(Node, item) for item in data["node_definitions"]
        )
        self.edges: tuple[Edge, ...] = tuple(
            decode(Edge, item) for item in data["edge_definitions"]
        )

    @property
    def warnings(self) -> list[shapes.Problem]:
        return self.data["warnings"]

    def __repr__(self) -> str:
        return f"<Proposal {self.name!r}: {len(self.nodes)} labels, {len(self.edges)} edge types>"

    async def create(self, name: str | None = None) -> AsyncMapping:
        source = self.data["data_source_id"]
        return await self._mappings.create(
            name or self.name, nodes=self.nodes, edges=self.edges, data_source=source
        )

    async def start(
        self,
        name: str | None = None,
        *,
        engine: Engine | None = None,
        ttl: str | timedelta | None = None,
        wait: bool = True,
        progress: bool = True,
    ) -> AsyncGraph:
        """Create it, and start a graph of it."""
        snapshot = await self.create(name)
        return await snapshot.start(engine=engine, ttl=ttl, wait=wait, progress=progress)


class AsyncMappings(AsyncResource):
    async def create(
        self,
        name: str,
        *,
        nodes: Sequence[Node],
        edges: Sequence[Edge] = (),
        description: str | None = None,
        data_source: int | None = None,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> AsyncMapping:
        body = given(
            name=name,
            node_definitions=[definition(node) for node in nodes],
            edge_definitions=[definition(edge) for edge in edges],
            description=description,
            data_source_id=data_source,
            ttl=iso(ttl),
            inactivity_timeout=iso(inactivity_timeout),
        )
        answer = await self._call("POST", "/api/mappings", json=body)
        return AsyncMapping(self._transport, decode(MappingInfo, answer))

    async def get(self, mapping_id: int) -> AsyncMapping:
        answer = await self._call("GET", "/api/mappings/{id}", id=mapping_id)
        return AsyncMapping(self._transport, decode(MappingInfo, answer))

    async def list(self, **filters: Unpack[shapes.MappingsFilters]) -> AsyncIterator[AsyncMapping]:
        """All matches, fetched page by page."""
        async for item in listed(self._transport, "/api/mappings", **filters):
            yield AsyncMapping(self._transport, decode(MappingInfo, item))

    async def validate(
        self, *, nodes: Sequence[Node], edges: Sequence[Edge] = (), data_source: int | None = None
    ) -> shapes.MappingValidation:
        """What is wrong with the definitions, each fault with its entity, column and a suggestion;
        nothing is kept."""
        body = {
            "node_definitions": [definition(node) for node in nodes],
            "edge_definitions": [definition(edge) for edge in edges],
            "data_source_id": data_source,
        }
        result: shapes.MappingValidation = await self._call(
            "POST", "/api/mappings/validate", json=body
        )
        return result

    async def infer(
        self,
        catalog: str | None = None,
        schema: str | None = None,
        *,
        tables: Sequence[str] | None = None,
        data_source: int | None = None,
    ) -> AsyncProposal:
        """A mapping proposed from a schema's keys: look at it, change it, `create()` it, or
        `start()` it at once."""
        body = given(
            catalog=catalog, schema=schema, tables=tables and [*tables], data_source_id=data_source
        )
        proposed = await self._call("POST", "/api/mappings/infer", json=body)
        return AsyncProposal(self, schema or catalog or "Inferred", proposed)
