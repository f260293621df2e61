"""The kernel's verbs over HTTP: what a worker has instead of a database.

Nothing is retried here. Whether a claim whose reply was lost was made, nobody can say; it lapses
and runs again. An end that was written twice is told from a stale one by the kernel (`repeated`).
So the worker may simply call again, and it alone knows how long that is worth while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from penstock.jobs import wire
from penstock.jobs.limits import check_batch
from penstock.jobs.model import Cancelled, Claimed, Enqueued, Exchanged, Registered, Verdict
from penstock.kit.control_plane import ControlPlaneHttp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from penstock.jobs.model import (
        Beat,
        Ending,
        JobId,
        JobSpec,
        JobView,
        Parking,
        ProgressUpdate,
        Registration,
        Release,
        Renewal,
    )
    from penstock.kit.control_plane import Component, Credential

ANSWER_SECONDS = 20.0
BEAT_SECONDS = 5.0
"""A heartbeat that hangs must fail while the shortest lease still has room for another one."""
CHUNK_BYTES = 4 * 1024 * 1024
"""Writes of many attempts are split below the control plane's limit: fifty large results at once
must not fail."""


class HttpJobStore(ControlPlaneHttp):
    """`async with HttpJobStore(url, token) as store:`; one per process is enough."""

    def __init__(self, url: str, token: Credential, *, component: Component = "worker") -> None:
        super().__init__(
            url, token, component=component, path="jobs", answer_seconds=ANSWER_SECONDS
        )

    async def enqueue(self, specs: Sequence[JobSpec]) -> list[Enqueued]:
        if not specs:
            return []
        check_batch(specs)
        data = await self._post("enqueue", {"jobs": [wire.dump_spec(s) for s in specs]})
        return [Enqueued(**added) for added in data["jobs"]]

    async def register(self, registration: Registration) -> Registered:
        return Registered(**await self._post("register", wire.dump_registration(registration)))

    async def claim(
        self,
        worker: str,
        queues: Sequence[str],
        limit: int,
        *,
        wait: float = 0,
        session: UUID | None = None,
    ) -> list[Claimed]:
        data = await self._post(
            "claim",
            _claim(worker, queues, limit, wait, session),
            answer_seconds=ANSWER_SECONDS + wait,
        )
        return [wire.load_claimed(job) for job in data["jobs"]]

    async def exchange(
        self,
        endings: Sequence[Ending],
        worker: str,
        queues: Sequence[str],
        limit: int,
        *,
        wait: float = 0,
        session: UUID | None = None,
    ) -> Exchanged:
        check_batch(endings)
        *before, last = _chunks(wire.dump_ending(e) for e in endings)
        verdicts = [verdict for chunk in before for verdict in await self._finish(chunk)]
        body = {"endings": last} | _claim(worker, queues, limit, wait, session)
        data = await self._post("exchange", body, answer_seconds=ANSWER_SECONDS + wait)
        claimed = [wire.load_claimed(job) for job in data["jobs"]]
        return Exchanged(
            verdicts=verdicts + [Verdict(v) for v in data["verdicts"]], claimed=claimed
        )

    async def finish(self, endings: Sequence[Ending]) -> list[Verdict]:
        check_batch(endings)
        chunks = _chunks(wire.dump_ending(e) for e in endings)
        return [verdict for chunk in chunks for verdict in await self._finish(chunk)]

    async def renew(self, beat: Beat) -> Renewal:
        check_batch(beat.held)
        return wire.load_renewal(
            await self._post("renew", wire.dump_beat(beat), answer_seconds=BEAT_SECONDS)
        )

    async def progress(self, updates: Sequence[ProgressUpdate]) -> list[bool]:
        check_batch(updates)
        return await self._write("progress", "updates", (wire.dump_progress(u) for u in updates))

    async def park(self, parkings: Sequence[Parking]) -> list[bool]:
        check_batch(parkings)
        return await self._write("park", "parkings", (wire.dump_parking(p) for p in parkings))

    async def release(self, releases: Sequence[Release]) -> list[bool]:
        check_batch(releases)
        return await self._write("release", "releases", (wire.dump_release(r) for r in releases))

    async def cancel(self, job_id: JobId, *, actor: str, reason: str = "") -> Cancelled:
        return Cancelled(
            **await self._post("cancel", {"job_id": job_id, "actor": actor, "reason": reason})
        )

    async def job(self, job_id: JobId) -> JobView:
        return wire.load_job(await self._call("GET", f"/{job_id}"))

    async def farewell(self, worker: str, session: UUID) -> None:
        await self._post("farewell", {"worker": worker, "session": session})

    async def _finish(self, chunk: Sequence[orjson.Fragment]) -> list[Verdict]:
        data = await self._post("finish", {"endings": chunk}) if chunk else {"verdicts": []}
        return [Verdict(v) for v in data["verdicts"]]

    async def _write(self, verb: str, name: str, items: Iterable[wire.Document]) -> list[bool]:
        written: list[bool] = []
        for chunk in _chunks(items):
            if chunk:
                written += (await self._post(verb, {name: chunk}))["written"]
        return written

    async def _post(
        self, verb: str, body: wire.Document, *, answer_seconds: float = ANSWER_SECONDS
    ) -> Any:
        content = wire.encode(body)
        return await self._call("POST", f"/{verb}", content=content, answer_seconds=answer_seconds)


def _claim(
    worker: str, queues: Sequence[str], limit: int, wait: float, session: UUID | None
) -> wire.Document:
    return {
        "worker": worker,
        "queues": list(queues),
        "limit": limit,
        "wait_seconds": wait,
        "session": session,
    }


def _chunks(items: Iterable[wire.Document]) -> Iterator[list[orjson.Fragment]]:
    """The items in their order, in runs that fit into one call; at least one run, which may be
    empty."""
    chunk: list[orjson.Fragment] = []
    size = 0
    for item in items:
        encoded = wire.encode(item)
        if chunk and size + len(encoded) > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(orjson.Fragment(encoded))
        size += len(encoded)
    yield chunk
