"""Algorithms on a graph, by name: `g.algo.pagerank(node_label="Person", write="rank")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._async.resource import AsyncResource
from penstock.client._async.waiting import AsyncWork, failed
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.work import ExecutionInfo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    from penstock.client._async.transport import AsyncTransport
    from penstock.client.errors import Failed
    from penstock.client.graph_shapes import AlgorithmListed
    from penstock.client.json_value import JsonObject

_OWN = {
    "node_label",
    "node_labels",
    "edge_type",
    "relationship_types",
    "timeout_ms",
    "directed",
    "weight_property",
    "source_id",
    "target_id",
    "max_depth",
}

LONGEST = 600.0
"""Seconds to wait for the answer to a start, which a small algorithm gives when it is done."""


class AsyncExecution(AsyncWork):
    """One run of an algorithm, finished or under way."""

    _OPEN = ("running",)
    _GOOD = "completed"

    def __init__(
        self, transport: AsyncTransport, slug: str, family: str, info: ExecutionInfo
    ) -> None:
        super().__init__(transport, slug=slug, id=info.execution_id)
        self._family = family
        self.info: ExecutionInfo = info

    @property
    def status(self) -> str:
        return self.info.status

    @property
    def result(self) -> JsonObject:
        return self.info.result

    def __repr__(self) -> str:
        return f"<Execution {self.info.algorithm_name} {self.status}>"

    async def refresh(self) -> Self:
        answer = await self._transport.call(
            "GET", f"/wrapper/{{slug}}/{self._family}/status/{{id}}", path=self._path
        )
        self.info = decode(ExecutionInfo, answer)
        return self

    async def how_far(self) -> tuple[float, str]:
        return self.info.progress_percent or 0.0, self.status

    def _title(self) -> str:
        return self.info.algorithm_name

    def _failure(self) -> Failed:
        what = f"{self.info.algorithm_name} {self.status}"
        return failed(what, self.info.error_message, code="ALGORITHM_FAILED")

    async def cancel(self) -> AsyncExecution:
        template = f"/wrapper/{{slug}}/{self._family}/executions/{{id}}"
        await self._transport.call("DELETE", template, path=self._path)
        return await self.refresh()


class AsyncAlgorithms(AsyncResource):
    """`family` is algo or networkx. Every name that the server lists is a method."""

    def __init__(self, transport: AsyncTransport, slug: str, family: str) -> None:
        super().__init__(transport, slug=slug)
        self._slug = slug
        self._family = family

    def __getattr__(self, name: str) -> Callable[..., Awaitable[AsyncExecution]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def algorithm(
            *, write: str | None = None, wait: bool = True, progress: bool = True, **own: object
        ) -> AsyncExecution:
            return await self.run(name, write=write, wait=wait, progress=progress, **own)

        algorithm.__name__ = name
        return algorithm

    async def run(
        self,
        name: str,
        *,
        write: str | None = None,
        wait: bool = True,
        progress: bool = True,
        **arguments: object,
    ) -> AsyncExecution:
        """What is no word of the request itself goes to the algorithm as a parameter."""
        body = {key: value for key, value in arguments.items() if key in _OWN}
        body["parameters"] = {key: value for key, value in arguments.items() if key not in _OWN}
        body |= given(result_property=write)
        template = f"/wrapper/{{slug}}/{self._family}/{{name}}"
        answer = await self._ask("POST", template, name=name, json=body, timeout=LONGEST)
        execution = AsyncExecution(
            self._transport, self._slug, self._family, decode(ExecutionInfo, answer)
        )
        return await execution.wait(progress=progress) if wait else execution

    async def catalogue(self, category: str | None = None) -> list[AlgorithmListed]:
        """The algorithms of this family, or of one category."""
        answer = await self._ask(
            "GET", f"/wrapper/{{slug}}/{self._family}/algorithms", query={"category": category}
        )
        algorithms: list[AlgorithmListed] = answer["algorithms"]
        return algorithms

    async def describe(self, name: str) -> AlgorithmListed:
        template = f"/wrapper/{{slug}}/{self._family}/algorithms/{{name}}"
        description: AlgorithmListed = await self._ask("GET", template, name=name)
        return description

    async def executions(self) -> list[JsonObject]:
        """Runs of this family's algorithms on this graph."""
        answer = await self._ask("GET", f"/wrapper/{{slug}}/{self._family}/executions")
        executions: list[JsonObject] = answer["executions"]
        return executions
