"""Snapshots: the files of one mapping version at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.listing import listed
from penstock.client._sync.waiting import changes, until_settled
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.durations import iso
from penstock.client.errors import Failed
from penstock.client.models import Progress, SnapshotInfo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._sync.transport import Transport
    from penstock.client.work import Change

OPEN = ("pending", "creating")


class Snapshot:
    def __init__(self, transport: Transport, info: SnapshotInfo) -> None:
        self._transport = transport
        self.info: SnapshotInfo = info

    @property
    def id(self) -> int:
        return self.info.id

    @property
    def status(self) -> str:
        return self.info.status

    def __repr__(self) -> str:
        return f"<Snapshot {self.id} {self.info.name!r} {self.status}>"

    def refresh(self) -> Snapshot:
        self.info = decode(SnapshotInfo, self._call("GET", "/api/snapshots/{id}"))
        return self

    def progress(self) -> Progress:
        return decode(Progress, self._call("GET", "/api/snapshots/{id}/progress"))

    def how_far(self) -> tuple[float, str]:
        seen = self.progress()
        return seen.progress_percent, seen.current_step or seen.phase

    def events(self) -> Iterator[Change]:
        """Where it is, at every change until it is ready or is not going to be."""
        yield from changes(self, OPEN)

    def wait(self, timeout: float | None = None, *, progress: bool = True) -> Snapshot:
        """Until it is ready; Failed when it is not going to be."""
        until_settled(self, f"Snapshot {self.info.name}", OPEN, timeout=timeout, show=progress)
        if self.status != "ready":
            raise Failed(
                (
                    f"Snapshot {self.id} is {self.status}: "
                    f"{self.info.error_message or 'no reason was given'}"
                ),
                code="SNAPSHOT_FAILED",
                status=200,
                details={"failed_step": self.info.failed_step},
            )
        return self

    def retry(self) -> Snapshot:
        self._call("POST", "/api/snapshots/{id}/retry")
        return self.refresh()

    def cancel(self) -> Snapshot:
        self._call("POST", "/api/snapshots/{id}/cancel")
        return self.refresh()

    def update(self, *, name: str | None = None, description: str | None = None) -> Snapshot:
        self._call("PUT", "/api/snapshots/{id}", json=given(name=name, description=description))
        return self.refresh()

    def lifecycle(
        self,
        *,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> Snapshot:
        body = {"ttl": iso(ttl), "inactivity_timeout": iso(inactivity_timeout)}
        self._call("PUT", "/api/snapshots/{id}/lifecycle", json=body)
        return self.refresh()

    def delete(self) -> shapes.Deleted:
        gone: shapes.Deleted = self._call("DELETE", "/api/snapshots/{id}")
        return gone

    def _call(self, method: str, template: str, *, json: object = None) -> Any:
        answer = self._transport.call(method, template, path={"id": self.id}, json=json)
        return None if answer is None else answer["data"]


class Snapshots:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        mapping_id: int,
        name: str,
        *,
        version: int | None = None,
        description: str | None = None,
        ttl: str | timedelta | None = None,
        inactivity_timeout: str | timedelta | None = None,
    ) -> Snapshot:
        body = given(
            mapping_id=mapping_id,
            name=name,
            mapping_version=version,
            description=description,
            ttl=iso(ttl),
            inactivity_timeout=iso(inactivity_timeout),
        )
        answer = self._transport.call("POST", "/api/snapshots", json=body)
        return Snapshot(self._transport, decode(SnapshotInfo, answer["data"]))

    def get(self, snapshot_id: int) -> Snapshot:
        answer = self._transport.call("GET", "/api/snapshots/{id}", path={"id": snapshot_id})
        return Snapshot(self._transport, decode(SnapshotInfo, answer["data"]))

    def list(self, **filters: Unpack[shapes.SnapshotsFilters]) -> Iterator[Snapshot]:
        for item in listed(self._transport, "/api/snapshots", **filters):
            yield Snapshot(self._transport, decode(SnapshotInfo, item))
