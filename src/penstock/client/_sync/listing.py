"""Iterates over paginated lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.client._sync.transport import Transport

PAGE = 100


def listed(
    transport: Transport,
    template: str,
    path: Mapping[str, object] | None = None,
    **query: object,
) -> Iterator[Any]:
    """Iterate over all pages; concurrent inserts and deletes may shift a page."""
    offset = 0
    while True:
        page = {"offset": offset, "limit": PAGE} | query
        answer = transport.call("GET", template, path=path, query=page)
        yield from answer["data"]
        offset += len(answer["data"])
        if not answer["data"] or offset >= answer["meta"]["total"]:
            return
