"""Iterates over paginated lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.client._async.transport import AsyncTransport

PAGE = 100


async def listed(
    transport: AsyncTransport,
    template: str,
    path: Mapping[str, object] | None = None,
    **query: object,
) -> AsyncIterator[Any]:
    """Iterate over all pages; concurrent inserts and deletes may shift a page."""
    offset = 0
    while True:
        page = {"offset": offset, "limit": PAGE} | query
        answer = await transport.call("GET", template, path=path, query=page)
        for item in answer["data"]:
            yield item
        offset += len(answer["data"])
        if not answer["data"] or offset >= answer["meta"]["total"]:
            return
