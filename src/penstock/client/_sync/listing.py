"""Lists, page by page as they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.client._sync.transport import Transport

PAGE = 100


def listed(transport: Transport, template: str, **query: object) -> Iterator[dict[str, Any]]:
    """Every item; what is deleted or added meanwhile may shift a page, as in any list that lives."""
    offset = 0
    while True:
        answer = transport.call("GET", template, query={"offset": offset, "limit": PAGE} | query)
        yield from answer["data"]
        offset += len(answer["data"])
        if not answer["data"] or offset >= answer["meta"]["total"]:
            return
