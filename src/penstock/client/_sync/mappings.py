"""Mappings: what becomes a graph, in versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.instances import Graph, Instances
from penstock.client._sync.listing import listed
from penstock.client.decoding import decode
from penstock.client.durations import iso
from penstock.client.models import Edge, MappingInfo, Node, definition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

    from penstock.client._sync.transport import Transport


class Mapping:
    """A mapping as it was when it was asked for; `refresh` asks again."""

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
    ) -> Mapping:
        """Changed definitions become a new version; somebody else's change in between is a Conflict."""
        body: dict[str, Any] = {"change_description": change, "expected_version": self.info.current_version}
        body |= {key: value for key, value in (("name", name), ("description", description)) if value is not None}
        if nodes is not None:
            body["node_definitions"] = [definition(node) for node in nodes]
        if edges is not None:
            body["edge_definitions"] = [definition(edge) for edge in edges]
        self.info = decode(MappingInfo, self._call("PUT", "/api/mappings/{id}", json=body))
        return self

    def delete(self) -> None:
        self._call("DELETE", "/api/mappings/{id}")

    def copy(self, name: str) -> Mapping:
        copied = self._call("POST", "/api/mappings/{id}/copy", json={"name": name})
        return Mapping(self._transport, decode(MappingInfo, copied))

    def lifecycle(
        self, *, ttl: str | timedelta | None = None, inactivity_timeout: str | timedelta | None = None
    ) -> Mapping:
        """How long its snapshots and instances live; None clears."""
        body = {"ttl": iso(ttl), "inactivity_timeout": iso(inactivity_timeout)}
        self._call("PUT", "/api/mappings/{id}/lifecycle", json=body)
        return self.refresh()

    def versions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call("GET", "/api/mappings/{id}/versions")
        return found

    def version(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", "/api/mappings/{id}/versions/{version}", version=number)
        return found

    def diff(self, before: int, after: int) -> dict[str, Any]:
        found: dict[str, Any] = self._call(
            "GET", "/api/mappings/{id}/versions/{before}/diff/{after}", before=before, after=after
        )
        return found

    def restore(self, number: int) -> Mapping:
        """A new version equal to an old one."""
        self._call("POST", "/api/mappings/{id}/versions/{version}/restore", version=number)
        return self.refresh()

    def tree(self) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", "/api/mappings/{id}/tree")
        return found

    def start(
        self,
        name: str | None = None,
        *,
        engine: str | None = None,
        ttl: str | timedelta | None = None,
        wait: bool = True,
        progress: bool = True,
        **options: Any,
    ) -> Graph:
        """An instance of this mapping: a graph to query. As a context manager it is terminated at the end."""
        instances = Instances(self._transport)
        return instances.create(
            name or self.name, mapping=self.id, engine=engine, ttl=ttl, wait=wait, progress=progress, **options
        )

    def _call(self, method: str, template: str, *, json: object = None, **path: object) -> Any:
        answer = self._transport.call(method, template, path={"id": self.id} | path, json=json)
        return None if answer is None else answer["data"]


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
        body: dict[str, Any] = {
            "name": name,
            "node_definitions": [definition(node) for node in nodes],
            "edge_definitions": [definition(edge) for edge in edges],
        }
        optional = {
            "description": description,
            "data_source_id": data_source,
            "ttl": iso(ttl),
            "inactivity_timeout": iso(inactivity_timeout),
        }
        body |= {key: value for key, value in optional.items() if value is not None}
        return self._made(self._transport.call("POST", "/api/mappings", json=body))

    def get(self, mapping_id: int) -> Mapping:
        return self._made(self._transport.call("GET", "/api/mappings/{id}", path={"id": mapping_id}))

    def list(self, *, search: str | None = None, owner: str | None = None, **filters: Any) -> Iterator[Mapping]:
        """All that match, page by page as they are asked for."""
        for item in listed(self._transport, "/api/mappings", search=search, owner=owner, **filters):
            yield Mapping(self._transport, decode(MappingInfo, item))

    def validate(
        self, *, nodes: Sequence[Node], edges: Sequence[Edge] = (), data_source: int | None = None
    ) -> dict[str, Any]:
        """What is wrong with the definitions, each fault with its entity, column and a suggestion; nothing is kept."""
        body = {
            "node_definitions": [definition(node) for node in nodes],
            "edge_definitions": [definition(edge) for edge in edges],
            "data_source_id": data_source,
        }
        found: dict[str, Any] = (self._transport.call("POST", "/api/mappings/validate", json=body))["data"]
        return found

    def infer(self, **where: Any) -> dict[str, Any]:
        """A mapping proposed from a schema's keys: `infer(data_source_id=1, schema="public")`."""
        found: dict[str, Any] = (self._transport.call("POST", "/api/mappings/infer", json=where))["data"]
        return found

    def _made(self, answer: Any) -> Mapping:
        return Mapping(self._transport, decode(MappingInfo, answer["data"]))
