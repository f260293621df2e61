"""What the parts of the client have in common: the transport, and where they stand in the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.client._async.transport import AsyncTransport


class AsyncResource:
    """`path` fills the places that all its templates share, such as its id."""

    def __init__(self, transport: AsyncTransport, **path: object) -> None:
        self._transport = transport
        self._path = path

    async def _ask(
        self,
        method: str,
        template: str,
        *,
        json: object = None,
        query: Mapping[str, object] | None = None,
        timeout: float | None = None,
        **path: object,
    ) -> Any:
        """The whole answer."""
        return await self._transport.call(
            method, template, path=self._path | path, json=json, query=query, timeout=timeout
        )

    async def _call(
        self,
        method: str,
        template: str,
        *,
        json: object = None,
        query: Mapping[str, object] | None = None,
        **path: object,
    ) -> Any:
        """The data of the answer; None where it has none."""
        answer = await self._ask(method, template, json=json, query=query, timeout=None, **path)
        return None if answer is None else answer["data"]
