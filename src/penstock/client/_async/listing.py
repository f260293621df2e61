"""Lists, page by page as they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.client._async.transport import AsyncTransport

PAGE = 100


async def listed(transport: AsyncTransport, template: str, **query: object) -> AsyncIterator[dict[str, Any]]:
    """Every item; what is deleted or added meanwhile may shift a page, as in any list that lives."""
    offset = 0
    while True:
        answer = await transport.call("GET", template, query={"offset": offset, "limit": PAGE} | query)
        for item in answer["data"]:
            yield item
        offset += len(answer["data"])
        if not answer["data"] or offset >= answer["meta"]["total"]:
            return
