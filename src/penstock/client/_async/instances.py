"""Instances: graph servers to query, and the algorithms that run on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from penstock.client._async.algorithms import AsyncAlgorithms
from penstock.client._async.listing import listed
from penstock.client._async.resource import AsyncResource
from penstock.client._async.waiting import AsyncWork, failed
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.durations import iso
from penstock.client.errors import NotFound
from penstock.client.frames import needed
from penstock.client.models import InstanceInfo, Progress
from penstock.client.results import QueryResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from datetime import timedelta
    from types import TracebackType
    from typing import Self, Unpack

    import pyarrow

    from penstock.client import shapes
    from penstock.client._async.transport import AsyncTransport
    from penstock.client.errors import Failed
    from penstock.client.graph_shapes import GraphSchema, GraphServerStatus, Lock, Queried, Subgraph
    from penstock.client.words import Engine
    from penstock.widget.expansion import Neighborhood

STOPPING_PAUSE = 0.1
ARROW = "application/vnd.apache.arrow.stream"


class AsyncGraph(AsyncWork):
    """An instance. `async with` terminates it at the end, whatever happened in between."""

    _OPEN = ("waiting_for_snapshot", "starting", "resuming")
    _GOOD = "running"

    def __init__(self, transport: AsyncTransport, info: InstanceInfo) -> None:
        super().__init__(transport, id=info.id, slug=info.url_slug)
        self.info: InstanceInfo = info
        self.algo: AsyncAlgorithms = AsyncAlgorithms(transport, info.url_slug, "algo")
        self.networkx: AsyncAlgorithms = AsyncAlgorithms(transport, info.url_slug, "networkx")

    @property
    def id(self) -> int:
        return self.info.id

    @property
    def status(self) -> str:
        return self.info.status

    def __repr__(self) -> str:
        return f"<Graph {self.id} {self.info.name!r} {self.status}>"

    async def __aenter__(self) -> AsyncGraph:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.terminate(force=True)

    async def refresh(self) -> Self:
        self.info = decode(InstanceInfo, await self._call("GET", "/api/instances/{id}"))
        return self

    async def progress(self) -> Progress:
        return decode(Progress, await self._call("GET", "/api/instances/{id}/progress"))

    async def how_far(self) -> tuple[float, str]:
        seen = await self.progress()
        return seen.progress_percent, seen.current_step or seen.phase

    async def history(self) -> AsyncIterator[shapes.EventShown]:
        """What happened to it and who did it, newest first."""
        async for item in listed(self._transport, "/api/instances/{id}/events", self._path):
            yield item

    def _title(self) -> str:
        return f"Graph {self.info.name}"

    def _failure(self) -> Failed:
        return failed(
            f"Instance {self.id} is {self.status}",
            self.info.error_message,
            code=self.info.error_code or "STARTUP_FAILED",
            details={"failed_phase": self.info.failed_phase},
        )

    async def query(
        self,
        cypher: str,
        parameters: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
    ) -> QueryResult:
        """Run Cypher; `timeout` in seconds interrupts it in the engine."""
        body = given(
            query=cypher,
            parameters=dict(parameters) if parameters else None,
            timeout_ms=None if timeout is None else int(timeout * 1000),
            max_rows=max_rows,
        )
        patience = 600.0 if timeout is None else timeout + 30.0
        answer: Queried = await self._ask(
            "POST", "/wrapper/{slug}/query", json=body, timeout=patience
        )
        return QueryResult(
            columns=tuple(answer["columns"]),
            column_types=tuple(answer["column_types"]),
            rows=answer["rows"],
            execution_time_ms=answer["execution_time_ms"],
            truncated=answer["truncated"],
            neighbors=self._neighbors,
        )

    async def arrow(
        self, cypher: str, parameters: Mapping[str, object] | None = None
    ) -> pyarrow.Table:
        """Run Cypher and take the whole result as Arrow, without a cap; needs pyarrow."""
        arrow = needed("pyarrow")
        body = {"query": cypher, "parameters": dict(parameters or {})}
        async with self._transport.streamed(
            "POST", "/wrapper/{slug}/query", path=self._path, json=body, accept=ARROW
        ) as answer:
            table: pyarrow.Table = arrow.ipc.open_stream(await answer.aread()).read_all()
            return table

    async def schema(self) -> GraphSchema:
        """Labels, edge types and their properties, with counts."""
        answer: GraphSchema = await self._ask("GET", "/wrapper/{slug}/schema")
        return answer

    async def server_status(self) -> GraphServerStatus:
        answer: GraphServerStatus = await self._ask("GET", "/wrapper/{slug}/status")
        return answer

    async def lock(self) -> Lock:
        """Which algorithm holds the graph."""
        answer = await self._ask("GET", "/wrapper/{slug}/lock")
        holder: Lock = answer["lock"]
        return holder

    async def subgraph(
        self,
        start: Sequence[str] | None = None,
        *,
        cypher: str | None = None,
        hops: int = 1,
        relationship_types: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Subgraph:
        """The nodes within `hops` of the start, and all edges between them."""
        body = {"hops": hops} | given(
            start=start, cypher=cypher, relationship_types=relationship_types, limit=limit
        )
        answer: Subgraph = await self._ask("POST", "/wrapper/{slug}/subgraph", json=body)
        return answer

    async def update(
        self, *, name: str | None = None, description: str | None = None
    ) -> AsyncGraph:
        await self._call(
            "PUT", "/api/instances/{id}", json=given(name=name, description=description)
        )
        return await self.refresh()

    async def lifecycle(
        self,
        *,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> AsyncGraph:
        body = {"ttl": iso(ttl), "inactivity_timeout": iso(inactivity_timeout)}
        await self._call("PUT", "/api/instances/{id}/lifecycle", json=body)
        return await self.refresh()

    async def cpu(self, cores: int) -> AsyncGraph:
        await self._call("PUT", "/api/instances/{id}/cpu", json={"cpu_cores": cores})
        return await self.refresh()

    async def memory(self, gigabytes: int) -> AsyncGraph:
        await self._call("PUT", "/api/instances/{id}/memory", json={"memory_gb": gigabytes})
        return await self.refresh()

    async def suspend(self, *, force: bool = False, reason: str = "") -> AsyncGraph:
        """Free its memory and keep computed results; `resume` restores it."""
        await self._call(
            "POST", "/api/instances/{id}/suspend", json={"force": force, "reason": reason}
        )
        return await self.refresh()

    async def resume(self) -> AsyncGraph:
        await self._call("POST", "/api/instances/{id}/resume")
        return await self.refresh()

    async def cancel(self, reason: str = "") -> None:
        """End it, whether it runs or is about to."""
        await self.terminate(force=True, reason=reason)

    async def terminate(self, *, force: bool = False, reason: str = "", wait: bool = True) -> None:
        """Terminate it; a no-op if already terminated. Without `wait` it may still be stopping."""
        try:
            await self._call(
                "POST", "/api/instances/{id}/terminate", json={"force": force, "reason": reason}
            )
            while wait:
                await anyio.sleep(STOPPING_PAUSE)
                await self.refresh()
        except NotFound:
            return

    async def _neighbors(self, node_id: str, limit: int) -> Neighborhood:
        neighborhood = await self.subgraph([node_id], limit=limit)
        return {
            "nodes": neighborhood["nodes"],
            "edges": neighborhood["edges"],
            "truncated": neighborhood["truncated"],
        }


class AsyncInstances(AsyncResource):
    async def create(
        self,
        name: str,
        *,
        mapping: int | None = None,
        mapping_version: int | None = None,
        snapshot: int | None = None,
        engine: Engine | None = None,
        description: str | None = None,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
        max_snapshot_age: str | timedelta | None = None,
        cpu_cores: int | None = None,
        wait: bool = True,
        progress: bool = True,
    ) -> AsyncGraph:
        """From a mapping, whose snapshot is made or reused, or a snapshot; waits for it to run,
        unless told not to."""
        body = given(
            name=name,
            mapping_id=mapping,
            mapping_version=mapping_version,
            snapshot_id=snapshot,
            wrapper_type=engine,
            description=description,
            ttl=iso(ttl),
            inactivity_timeout=iso(inactivity_timeout),
            max_snapshot_age=iso(max_snapshot_age),
            cpu_cores=cpu_cores,
        )
        answer = await self._call("POST", "/api/instances", json=body)
        graph = AsyncGraph(self._transport, decode(InstanceInfo, answer))
        return await graph.wait(progress=progress) if wait else graph

    async def get(self, instance_id: int) -> AsyncGraph:
        answer = await self._call("GET", "/api/instances/{id}", id=instance_id)
        return AsyncGraph(self._transport, decode(InstanceInfo, answer))

    async def list(self, **filters: Unpack[shapes.InstancesFilters]) -> AsyncIterator[AsyncGraph]:
        async for item in listed(self._transport, "/api/instances", **filters):
            yield AsyncGraph(self._transport, decode(InstanceInfo, item))

    async def limits(self) -> shapes.UserStatus:
        """How many you run, and how many you may."""
        answer: shapes.UserStatus = await self._call("GET", "/api/instances/user/status")
        return answer
