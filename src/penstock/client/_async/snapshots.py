"""Snapshots: the files of one mapping version at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._async.listing import listed
from penstock.client._async.resource import AsyncResource
from penstock.client._async.waiting import AsyncWork, failed
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.durations import iso
from penstock.client.models import Progress, SnapshotInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import timedelta
    from typing import Self, Unpack

    from penstock.client import shapes
    from penstock.client._async.transport import AsyncTransport
    from penstock.client.errors import Failed


class AsyncSnapshot(AsyncWork):
    """A snapshot as last fetched; work until it is ready."""

    _OPEN = ("pending", "creating")
    _GOOD = "ready"

    def __init__(self, transport: AsyncTransport, info: SnapshotInfo) -> None:
        super().__init__(transport, id=info.id)
        self.info: SnapshotInfo = info

    @property
    def id(self) -> int:
        return self.info.id

    @property
    def status(self) -> str:
        return self.info.status

    def __repr__(self) -> str:
        return f"<Snapshot {self.id} {self.info.name!r} {self.status}>"

    async def refresh(self) -> Self:
        self.info = decode(SnapshotInfo, await self._call("GET", "/api/snapshots/{id}"))
        return self

    async def progress(self) -> Progress:
        return decode(Progress, await self._call("GET", "/api/snapshots/{id}/progress"))

    async def how_far(self) -> tuple[float, str]:
        seen = await self.progress()
        return seen.progress_percent, seen.current_step or seen.phase

    def _title(self) -> str:
        return f"Snapshot {self.info.name}"

    def _failure(self) -> Failed:
        return failed(
            f"Snapshot {self.id} is {self.status}",
            self.info.error_message,
            code="SNAPSHOT_FAILED",
            details={"failed_step": self.info.failed_step},
        )

    async def retry(self) -> AsyncSnapshot:
        await self._call("POST", "/api/snapshots/{id}/retry")
        return await self.refresh()

    async def cancel(self) -> AsyncSnapshot:
        await self._call("POST", "/api/snapshots/{id}/cancel")
        return await self.refresh()

    async def update(
        self, *, name: str | None = None, description: str | None = None
    ) -> AsyncSnapshot:
        await self._call(
            "PUT", "/api/snapshots/{id}", json=given(name=name, description=description)
        )
        return await self.refresh()

    async def lifecycle(
        self,
        *,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> AsyncSnapshot:
        body = {"ttl": iso(ttl), "inactivity_timeout": iso(inactivity_timeout)}
        await self._call("PUT", "/api/snapshots/{id}/lifecycle", json=body)
        return await self.refresh()

    async def delete(self) -> shapes.Deleted:
        gone: shapes.Deleted = await self._call("DELETE", "/api/snapshots/{id}")
        return gone


class AsyncSnapshots(AsyncResource):
    async def create(
        self,
        mapping_id: int,
        name: str,
        *,
        version: int | None = None,
        description: str | None = None,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> AsyncSnapshot:
        body = given(
            mapping_id=mapping_id,
            name=name,
            mapping_version=version,
            description=description,
            ttl=iso(ttl),
            inactivity_timeout=iso(inactivity_timeout),
        )
        answer = await self._call("POST", "/api/snapshots", json=body)
        return AsyncSnapshot(self._transport, decode(SnapshotInfo, answer))

    async def get(self, snapshot_id: int) -> AsyncSnapshot:
        answer = await self._call("GET", "/api/snapshots/{id}", id=snapshot_id)
        return AsyncSnapshot(self._transport, decode(SnapshotInfo, answer))

    async def list(
        self, **filters: Unpack[shapes.SnapshotsFilters]
    ) -> AsyncIterator[AsyncSnapshot]:
        async for item in listed(self._transport, "/api/snapshots", **filters):
            yield AsyncSnapshot(self._transport, decode(SnapshotInfo, item))
