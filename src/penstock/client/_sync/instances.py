"""Instances: graph servers to query, and the algorithms that run on them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from penstock.client._sync.algorithms import Algorithms
from penstock.client._sync.listing import listed
from penstock.client._sync.waiting import changes, until_settled
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.durations import iso
from penstock.client.errors import Failed, NotFound
from penstock.client.frames import needed
from penstock.client.models import InstanceInfo, Progress
from penstock.client.results import QueryResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta
    from types import TracebackType
    from typing import Unpack

    import pyarrow

    from penstock.client import shapes
    from penstock.client._sync.transport import Transport
    from penstock.client.words import Engine
    from penstock.client.work import Change
    from penstock.widget.expansion import Neighborhood

UNSETTLED = ("waiting_for_snapshot", "starting", "resuming")
STOPPING_PAUSE = 0.1
ARROW = "application/vnd.apache.arrow.stream"


class Graph:
    """An instance. `with` terminates it at the end, whatever happened in between."""

    def __init__(self, transport: Transport, info: InstanceInfo) -> None:
        self._transport = transport
        self.info: InstanceInfo = info
        self.algo: Algorithms = Algorithms(transport, info.url_slug, "algo")
        self.networkx: Algorithms = Algorithms(transport, info.url_slug, "networkx")

    @property
    def id(self) -> int:
        return self.info.id

    @property
    def status(self) -> str:
        return self.info.status

    def __repr__(self) -> str:
        return f"<Graph {self.id} {self.info.name!r} {self.status}>"

    def __enter__(self) -> Graph:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.terminate(force=True)

    def refresh(self) -> Graph:
        self.info = decode(InstanceInfo, self._call("GET", "/api/instances/{id}"))
        return self

    def progress(self) -> Progress:
        return decode(Progress, self._call("GET", "/api/instances/{id}/progress"))

    def how_far(self) -> tuple[float, str]:
        seen = self.progress()
        return seen.progress_percent, seen.current_step or seen.phase

    def events(self) -> Iterator[Change]:
        """Where it is, at every change until it runs or is not going to."""
        yield from changes(self, UNSETTLED)

    def history(self) -> Iterator[shapes.EventShown]:
        """What happened to it and who did it, newest first."""
        yield from listed(self._transport, "/api/instances/{id}/events", {"id": self.id})

    def wait(self, timeout: float | None = None, *, progress: bool = True) -> Graph:
        """Until it runs; Failed, with the cause, when it is not going to."""
        until_settled(self, f"Graph {self.info.name}", UNSETTLED, timeout=timeout, show=progress)
        if self.status != "running":
            raise Failed(
                (
                    f"Instance {self.id} is {self.status}: "
                    f"{self.info.error_message or 'no reason was given'}"
                ),
                code=self.info.error_code or "STARTUP_FAILED",
                status=200,
                details={"failed_phase": self.info.failed_phase},
            )
        return self

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
    ) -> QueryResult:
        """Run Cypher; `timeout` in seconds interrupts it in the engine."""
        body: dict[str, Any] = {"query": cypher}
        if parameters:
            body["parameters"] = dict(parameters)
        if timeout is not None:
            body["timeout_ms"] = int(timeout * 1000)
        if max_rows is not None:
            body["max_rows"] = max_rows
        patience = None if timeout is None else timeout + 30.0
        answer = self._ask("POST", "/wrapper/{slug}/query", json=body, timeout=patience or 600.0)
        return QueryResult(
            columns=tuple(answer["columns"]),
            column_types=tuple(answer["column_types"]),
            rows=answer["rows"],
            execution_time_ms=answer["execution_time_ms"],
            truncated=answer["truncated"],
            neighbors=self._neighbors,
        )

    def arrow(self, cypher: str, parameters: Mapping[str, object] | None = None) -> pyarrow.Table:
        """Run Cypher and take the whole result as Arrow, without a cap; needs pyarrow."""
        arrow = needed("pyarrow")
        body = {"query": cypher, "parameters": dict(parameters or {})}
        path = {"slug": self.info.url_slug}
        with self._transport.streamed(
            "POST", "/wrapper/{slug}/query", path=path, json=body, accept=ARROW
        ) as answer:
            table: pyarrow.Table = arrow.ipc.open_stream(answer.read()).read_all()
            return table

    def schema(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._ask("GET", "/wrapper/{slug}/schema")
        return answer

    def server_status(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._ask("GET", "/wrapper/{slug}/status")
        return answer

    def lock(self) -> dict[str, Any]:
        holder: dict[str, Any] = (self._ask("GET", "/wrapper/{slug}/lock"))["lock"]
        return holder

    def subgraph(
        self,
        start: Sequence[str] | None = None,
        *,
        cypher: str | None = None,
        hops: int = 1,
        relationship_types: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """The nodes within `hops` of the start, and all edges between them."""
        body = {"hops": hops} | given(
            start=start, cypher=cypher, relationship_types=relationship_types, limit=limit
        )
        answer: dict[str, Any] = self._ask("POST", "/wrapper/{slug}/subgraph", json=body)
        return answer

    def update(self, *, name: str | None = None, description: str | None = None) -> Graph:
        self._call("PUT", "/api/instances/{id}", json=given(name=name, description=description))
        return self.refresh()

    def lifecycle(
        self,
        *,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> Graph:
        body = {"ttl": iso(ttl), "inactivity_timeout": iso(inactivity_timeout)}
        self._call("PUT", "/api/instances/{id}/lifecycle", json=body)
        return self.refresh()

    def cpu(self, cores: int) -> Graph:
        self._call("PUT", "/api/instances/{id}/cpu", json={"cpu_cores": cores})
        return self.refresh()

    def memory(self, gigabytes: int) -> Graph:
        self._call("PUT", "/api/instances/{id}/memory", json={"memory_gb": gigabytes})
        return self.refresh()

    def suspend(self, *, force: bool = False, reason: str = "") -> Graph:
        """Free its memory and keep computed results; `resume` restores it."""
        self._call("POST", "/api/instances/{id}/suspend", json={"force": force, "reason": reason})
        return self.refresh()

    def resume(self) -> Graph:
        self._call("POST", "/api/instances/{id}/resume")
        return self.refresh()

    def cancel(self, reason: str = "") -> None:
        """End it, whether it runs or is about to."""
        self.terminate(force=True, reason=reason)

    def terminate(self, *, force: bool = False, reason: str = "", wait: bool = True) -> None:
        """Terminate it; a no-op if already terminated. Without `wait` it may still be stopping."""
        try:
            self._call(
                "POST", "/api/instances/{id}/terminate", json={"force": force, "reason": reason}
            )
            while wait:
                time.sleep(STOPPING_PAUSE)
                self.refresh()
        except NotFound:
            return

    def _neighbors(self, node_id: str, limit: int) -> Neighborhood:
        neighborhood = self.subgraph([node_id], limit=limit)
        return {
            "nodes": neighborhood["nodes"],
            "edges": neighborhood["edges"],
            "truncated": neighborhood["truncated"],
        }

    def _call(self, method: str, template: str, *, json: object = None) -> Any:
        answer = self._transport.call(method, template, path={"id": self.id}, json=json)
        return None if answer is None else answer["data"]

    def _ask(
        self, method: str, template: str, *, json: object = None, timeout: float | None = None
    ) -> Any:
        path = {"slug": self.info.url_slug}
        return self._transport.call(method, template, path=path, json=json, timeout=timeout)


class Instances:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
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
    ) -> Graph:
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
        answer = self._transport.call("POST", "/api/instances", json=body)
        graph = Graph(self._transport, decode(InstanceInfo, answer["data"]))
        return graph.wait(progress=progress) if wait else graph

    def get(self, instance_id: int) -> Graph:
        answer = self._transport.call("GET", "/api/instances/{id}", path={"id": instance_id})
        return Graph(self._transport, decode(InstanceInfo, answer["data"]))

    def list(self, **filters: Unpack[shapes.InstancesFilters]) -> Iterator[Graph]:
        for item in listed(self._transport, "/api/instances", **filters):
            yield Graph(self._transport, decode(InstanceInfo, item))

    def limits(self) -> shapes.UserStatus:
        """How many you run, and how many you may."""
        answer: shapes.UserStatus = (self._transport.call("GET", "/api/instances/user/status"))[
            "data"
        ]
        return answer
