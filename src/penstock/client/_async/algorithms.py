"""Algorithms on a graph, by name: `g.algo.pagerank(node_label="Person", write="rank")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._async.waiting import changes, until_settled
from penstock.client.decoding import decode
from penstock.client.errors import Failed
from penstock.client.work import Change, ExecutionInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from penstock.client._async.transport import AsyncTransport

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


OPEN = ("running",)


class AsyncExecution:
    """One run of an algorithm, finished or under way."""

    def __init__(
        self, transport: AsyncTransport, slug: str, family: str, info: ExecutionInfo
    ) -> None:
        self._transport = transport
        self._path = {"slug": slug, "id": info.execution_id}
        self._family = family
        self.info: ExecutionInfo = info

    @property
    def status(self) -> str:
        return self.info.status

    @property
    def result(self) -> dict[str, Any]:
        return self.info.result

    def __repr__(self) -> str:
        return f"<Execution {self.info.algorithm_name} {self.status}>"

    async def refresh(self) -> AsyncExecution:
        answer = await self._transport.call(
            "GET", f"/wrapper/{{slug}}/{self._family}/status/{{id}}", path=self._path
        )
        self.info = decode(ExecutionInfo, answer)
        return self

    async def how_far(self) -> tuple[float, str]:
        return self.info.progress_percent or 0.0, self.status

    async def events(self) -> AsyncIterator[Change]:
        """Where it is, at every change until it is over."""
        async for item in changes(self, OPEN):
            yield item

    async def wait(self, timeout: float | None = None, *, progress: bool = True) -> AsyncExecution:
        """Until it is over; Failed, with the cause, when it did not complete."""
        await until_settled(self, self.info.algorithm_name, OPEN, timeout=timeout, show=progress)
        if self.status != "completed":
            message = (
                f"{self.info.algorithm_name} {self.status}: "
                f"{self.info.error_message or 'no reason was given'}"
            )
            raise Failed(message, code="ALGORITHM_FAILED", status=200)
        return self

    async def cancel(self) -> AsyncExecution:
        template = f"/wrapper/{{slug}}/{self._family}/executions/{{id}}"
        await self._transport.call("DELETE", template, path=self._path)
        return await self.refresh()


class AsyncAlgorithms:
    """`family` is algo or networkx. Every name that the server lists is a method."""

    def __init__(self, transport: AsyncTransport, slug: str, family: str) -> None:
        self._transport = transport
        self._slug = slug
        self._family = family

    def __getattr__(self, name: str) -> Callable[..., Awaitable[AsyncExecution]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def algorithm(**arguments: Any) -> AsyncExecution:
            return await self.run(name, **arguments)

        algorithm.__name__ = name
        return algorithm

    async def run(
        self,
        name: str,
        *,
        write: str | None = None,
        wait: bool = True,
        progress: bool = True,
        **arguments: Any,
    ) -> AsyncExecution:
        """What is no word of the request itself goes to the algorithm as a parameter."""
        body = {key: value for key, value in arguments.items() if key in _OWN}
        body["parameters"] = {key: value for key, value in arguments.items() if key not in _OWN}
        if write is not None:
            body["result_property"] = write
        answer = await self._call(
            "POST", f"/wrapper/{{slug}}/{self._family}/{{name}}", name=name, json=body
        )
        execution = AsyncExecution(
            self._transport, self._slug, self._family, decode(ExecutionInfo, answer)
        )
        return await execution.wait(progress=progress) if wait else execution

    async def catalogue(self, category: str | None = None) -> list[dict[str, Any]]:
        query = {"category": category}
        answer = await self._call(
            "GET", f"/wrapper/{{slug}}/{self._family}/algorithms", query=query
        )
        algorithms: list[dict[str, Any]] = (
            answer["algorithms"] if isinstance(answer, dict) else answer
        )
        return algorithms

    async def describe(self, name: str) -> dict[str, Any]:
        template = f"/wrapper/{{slug}}/{self._family}/algorithms/{{name}}"
        description: dict[str, Any] = await self._call("GET", template, name=name)
        return description

    async def executions(self) -> list[dict[str, Any]]:
        answer = await self._call("GET", f"/wrapper/{{slug}}/{self._family}/executions")
        executions: list[dict[str, Any]] = (
            answer["executions"] if isinstance(answer, dict) else answer
        )
        return executions

    async def _call(
        self,
        method: str,
        template: str,
        *,
        json: object = None,
        query: Mapping[str, object] | None = None,
        **path: object,
    ) -> Any:
        everything = {"slug": self._slug} | path
        return await self._transport.call(
            method, template, path=everything, json=json, query=query, timeout=600.0
        )
