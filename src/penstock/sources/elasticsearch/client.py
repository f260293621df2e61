"""Client of one cluster: requests, and points in time (snapshots for searches)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.sources.cancellations import Cancellations
from penstock.sources.elasticsearch.failure import failure, partial
from penstock.sources.errors import SnapshotLost, SourceUnavailable
from penstock.sources.rest import Rest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.kit.outbound import Outbound
    from penstock.sources.elasticsearch.config import Config
    from penstock.sources.rest import Answer, Document

PRODUCT = "Elasticsearch"
_CANCEL_SECONDS = 5.0

log = logging.get("sources.elasticsearch")


class Client:
    def __init__(self, config: Config, outbound: Outbound) -> None:
        self.config = config
        self._rest = Rest(
            PRODUCT,
            config.url.rstrip("/"),
            outbound,
            timeout=config.request_timeout,
            retry_seconds=config.retry_seconds,
            ca_file=config.ca_file,
        )
        self._cancellations = Cancellations()

    async def close(self) -> None:
        await self._cancellations.close()
        await self._rest.close()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str] | None = None,
        trace: str = "",
    ) -> Answer:
        """The response if its status is 200; raises the translated error otherwise."""
        answer = await self._rest.send(
            method, path, body=body, params=params, headers=self._headers(trace)
        )
        if answer.status != 200:
            raise failure(answer, self.config)
        return answer

    async def document(self, method: str, path: str, *, body: object = None) -> Document:
        return (await self.ask(method, path, body=body)).json(PRODUCT)

    async def open_point_in_time(self, index: str) -> str:
        """Open a point in time, which does not see later writes; each search extends its life."""
        params = {"keep_alive": self.config.keep_alive}
        answer = await self.ask("POST", f"/{in_path(index)}/_pit", params=params)
        return str(answer.json(PRODUCT)["id"])

    async def close_point_in_time(self, pit: str) -> None:
        """Close it, even if the caller is being cancelled; one that stays open expires."""
        await self._cancellations.finish(self._close_point_in_time(pit))

    @asynccontextmanager
    async def point_in_time(self, index: str) -> AsyncIterator[str]:
        pit = await self.open_point_in_time(index)
        try:
            yield pit
        finally:
            await self.close_point_in_time(pit)

    async def _close_point_in_time(self, pit: str) -> None:
        status = await self._rest.once(
            "DELETE",
            "/_pit",
            body={"id": pit},
            headers=self._headers(""),
            seconds=_CANCEL_SECONDS,
        )
        if status != 200:
            log.warning(
                "elasticsearch_moment_left_to_expire",
                status=status,
                keep_alive=self.config.keep_alive,
            )

    def _headers(self, trace: str) -> dict[str, str]:
        sent = (
            {}
            if self.config.authorization is None
            else {"Authorization": self.config.authorization}
        )
        return {**sent, "X-Opaque-Id": trace.encode("ascii", "replace").decode()} if trace else sent


class PointInTimeHold:
    """Keeps a plan's point in time alive; each `alive` call extends it."""

    def __init__(self, client: Client, pit: str) -> None:
        self._client = client
        self._pit = pit

    async def alive(self) -> bool:
        body = {
            "size": 0,
            "track_total_hits": False,
            "pit": {"id": self._pit, "keep_alive": self._keep_alive},
        }
        try:
            answer = await self._client.document("POST", "/_search", body=body)
        except SourceUnavailable:
            raise
        except PenstockError:
            return False
        shards = answer.get("_shards", {})
        return not (
            shards.get("failed") and isinstance(partial(shards, self._client.config), SnapshotLost)
        )

    async def close(self) -> None:
        await self._client.close_point_in_time(self._pit)

    @property
    def _keep_alive(self) -> str:
        return self._client.config.keep_alive


def in_path(index: str) -> str:
    return quote(index, safe="*,")
