"""Read one slice of a point in time page by page, with `search_after` the previous page's last hit.

Hits are sorted by `_shard_doc`, their order on disk, so every page costs the same. The page size
adapts to the size of the documents.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.sources.elasticsearch.client import PRODUCT
from penstock.sources.elasticsearch.failure import partial
from penstock.sources.elasticsearch.pages import Decoder
from penstock.sources.errors import SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import pyarrow as pa

    from penstock.kit.json_value import JsonObject
    from penstock.sources.elasticsearch.client import Client
    from penstock.sources.elasticsearch.pages import Page
    from penstock.sources.elasticsearch.query import Column

_FIRST_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRead:
    """What to read: the columns, the condition as query DSL, and the slice number and count."""

    columns: list[Column]
    condition: JsonObject | None = None
    slice: int = 0
    slices: int = 1

    def search(self, decoder: Decoder) -> dict[str, object]:
        body = {**decoder.request(), "sort": [{"_shard_doc": "asc"}], "track_total_hits": False}
        if self.condition is not None:
            body["query"] = self.condition
        if self.slices > 1:
            body["slice"] = {"id": self.slice, "max": self.slices}
        return body


async def read(
    client: Client, pit: str, slice_read: SliceRead, trace: str
) -> AsyncGenerator[pa.RecordBatch]:
    config = client.config
    decoder = Decoder(slice_read.columns)
    body = slice_read.search(decoder)
    rows = min(_FIRST_ROWS, config.page_rows)
    while True:
        body |= {"pit": {"id": pit, "keep_alive": config.keep_alive}, "size": rows}
        answer = await client.ask(
            "POST",
            "/_search",
            body=body,
            params={"allow_partial_search_results": "false"},
            trace=trace,
        )
        page = await asyncio.to_thread(lambda reply: decoder.page(reply.json(PRODUCT)), answer)
        _check_whole(page, client)
        if page.after is None:
            return
        yield page.batch
        pit, body["search_after"] = page.pit or pit, page.after
        fitting = config.page_bytes * page.batch.num_rows // max(1, len(answer.body))
        rows = max(1, min(fitting, config.page_rows, rows * 4))


def _check_whole(page: Page, client: Client) -> None:
    if page.shards.get("failed"):
        raise partial(page.shards, client.config)
    if page.timed_out:
        raise SourceUnavailable("A search timed out at Elasticsearch before it was complete.")
