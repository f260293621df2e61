"""Mappings: what becomes a graph, in versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.instances import Graph, Instances
from penstock.client._sync.listing import listed
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.durations import iso
from penstock.client.models import Edge, MappingInfo, Node, definition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._sync.transport import Transport
    from penstock.client.words import Engine, InstanceStatus


class Mapping:
    """A mapping as last fetched; `refresh` fetches it again."""

    def __init__(self, transport: Transport, info: MappingInfo) -> None:
        self._transport = transport
        self.info: MappingInfo = info

    @property
    def id(self) -> int:
        return self.info.id

    @property
    def name(self) -> str:
        return self.info.name

    def __repr__(self) -> str:
        return f"<Mapping {self.id} {self.name!r} v{self.info.current_version}>"

    def refresh(self) -> Mapping:
        self.info = decode(MappingInfo, self._call("GET", "/api/mappings/{id}"))
        return self

    def update(
        self,
        change: str,
        *,
        name: str | None = None,
        description: str | None = None,
        nodes: Sequence[Node] | None = None,
        edges: Sequence[Edge] | None = None,
        data_source: int | None = None,
    ) -> Mapping:
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
        self.info = decode(MappingInfo, self._call("PUT", "/api/mappings/{id}", json=body))
        return self

    def delete(self) -> shapes.Deleted:
        gone: shapes.Deleted = self._call("DELETE", "/api/mappings/{id}")
        return gone

    def copy(self, name: str) -> Mapping:
        copied = self._call("POST", "/api/mappings/{id}/copy", json={"name": name})
        return Mapping(self._transport, decode(MappingInfo, copied))

    def lifecycle(
        self,
        *,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> Mapping:
        """How long its snapshots and instances live; None clears."""
        body = {"ttl": iso(ttl), "inactivity_timeout": iso(inactivity_timeout)}
        self._call("PUT", "/api/mappings/{id}/lifecycle", json=body)
        return self.refresh()

    def versions(self) -> list[shapes.VersionListed]:
        template = "/api/mappings/{id}/versions"
        return list(listed(self._transport, template, {"id": self.id}))

    def version(self, number: int) -> shapes.VersionDetail:
        version: shapes.VersionDetail = self._call(
            "GET", "/api/mappings/{id}/versions/{version}", version=number
        )
        return version

    def diff(self, before: int, after: int) -> shapes.Diff:
        answer: shapes.Diff = self._call(
            "GET", "/api/mappings/{id}/versions/{before}/diff/{after}", before=before, after=after
        )
        return answer

    def restore(self, number: int) -> Mapping:
        """A new version equal to an old one."""
        self._call("POST", "/api/mappings/{id}/versions/{version}/restore", version=number)
        return self.refresh()

    def tree(
        self, *, include_instances: bool | None = None, status: InstanceStatus | str | None = None
    ) -> shapes.Tree:
        """Its versions, their snapshots and the instances of those."""
        query = {"include_instances": include_instances, "status": status}
        answer = self._transport.call(
            "GET", "/api/mappings/{id}/tree", path={"id": self.id}, query=query
        )
        answer_tree: shapes.Tree = answer["data"]
        return answer_tree

    def start(
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
    ) -> Graph:
        """An instance of this mapping: a graph to query. As a context manager it is terminated at
        the end."""
        return Instances(self._transport).create(
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

    def _call(self, method: str, template: str, *, json: object = None, **path: object) -> Any:
        answer = self._transport.call(method, template, path={"id": self.id} | path, json=json)
        return None if answer is None else answer["data"]


class Proposal:
    """A mapping that the keys of a schema speak for; nothing is kept until it is created or
    started."""

    def __init__(self, mappings: Mappings, name: str, data: shapes.Proposed) -> None:
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

    def create(self, name: str | None = None) -> Mapping:
        source = self.data["data_source_id"]
        return self._mappings.create(
            name or self.name, nodes=self.nodes, edges=self.edges, data_source=source
        )

    def start(
        self,
        name: str | None = None,
        *,
        engine: Engine | None = None,
        ttl: str | timedelta | None = None,
        wait: bool = True,
        progress: bool = True,
    ) -> Graph:
        """Create it, and start a graph of it."""
        snapshot = self.create(name)
        return snapshot.start(engine=engine, ttl=ttl, wait=wait, progress=progress)


class Mappings:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        name: str,
        *,
        nodes: Sequence[Node],
        edges: Sequence[Edge] = (),
        description: str | None = None,
        data_source: int | None = None,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> Mapping:
        body = given(
            name=name,
            node_definitions=[definition(node) for node in nodes],
            edge_definitions=[definition(edge) for edge in edges],
            description=description,
            data_source_id=data_source,
            ttl=iso(ttl),
            inactivity_timeout=iso(inactivity_timeout),
        )
        return self._made(self._transport.call("POST", "/api/mappings", json=body))

    def get(self, mapping_id: int) -> Mapping:
        return self._made(
            self._transport.call("GET", "/api/mappings/{id}", path={"id": mapping_id})
        )

    def list(self, **filters: Unpack[shapes.MappingsFilters]) -> Iterator[Mapping]:
        """All matches, fetched page by page."""
        for item in listed(self._transport, "/api/mappings", **filters):
            yield Mapping(self._transport, decode(MappingInfo, item))

    def validate(
        self, *, nodes: Sequence[Node], edges: Sequence[Edge] = (), data_source: int | None = None
    ) -> shapes.MappingValidation:
        """What is wrong with the definitions, each fault with its entity, column and a suggestion;
        nothing is kept."""
        body = {
            "node_definitions": [definition(node) for node in nodes],
            "edge_definitions": [definition(edge) for edge in edges],
            "data_source_id": data_source,
        }
        answer = self._transport.call("POST", "/api/mappings/validate", json=body)
        result: shapes.MappingValidation = answer["data"]
        return result

    def infer(
        self,
        catalog: str | None = None,
        schema: str | None = None,
        *,
        tables: Sequence[str] | None = None,
        data_source: int | None = None,
    ) -> Proposal:
        """A mapping proposed from a schema's keys: look at it, change it, `create()` it, or
        `start()` it at once."""
        body = given(
            catalog=catalog, schema=schema, tables=tables and [*tables], data_source_id=data_source
        )
        answer = self._transport.call("POST", "/api/mappings/infer", json=body)
        return Proposal(self, schema or catalog or "Inferred", answer["data"])

    def _made(self, answer: Any) -> Mapping:
        return Mapping(self._transport, decode(MappingInfo, answer["data"]))
