"""What a job store must do: the verbs of a worker, and of those who give it work.

Two implementations keep this contract, PostgreSQL (`store.PgJobStore`, in the control plane) and
HTTP (`http.HttpJobStore`, in workers, which have no database credentials); one conformance suite
holds both to it. A write by an attempt whose fence was rotated changes nothing and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from penstock.jobs.model import (
        Beat,
        Cancelled,
        Claimed,
        Ending,
        Enqueued,
        Exchanged,
        JobId,
        JobSpec,
        JobView,
        Parking,
        ProgressUpdate,
        Registered,
        Registration,
        Release,
        Renewal,
        Verdict,
    )


class JobStore(Protocol):
    async def enqueue(self, specs: Sequence[JobSpec]) -> list[Enqueued]:
        """Accept jobs, all or none. ResourceLocked names a lock's holder; Draining while the system
        drains."""
        ...

    async def register(self, registration: Registration) -> Registered:
        """A process starts under a worker's name: what an earlier process of that name still holds
        is taken off it.

        To be called once, before the first claim; repeated it changes nothing. Conflict when a
        later process has registered the name since.
        """
        ...

    async def claim(
        self,
        worker: str,
        queues: Sequence[str],
        limit: int,
        *,
        wait: float = 0,
        session: UUID | None = None,
    ) -> list[Claimed]:
        """Up to `limit` attempts, most urgent first; waits up to `wait` seconds for the first one.

        Attempts that name no `session` are taken over by nobody. A session that was superseded gets
        none before it has heard so with a heartbeat.
        """
        ...

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
        """Finish and claim in one round trip; the endings are recorded before any waiting
        begins.
        """
        ...

    async def finish(self, endings: Sequence[Ending]) -> list[Verdict]: ...

    async def renew(self, beat: Beat) -> Renewal:
        """Extend every lease that is still held and say which are not."""
        ...

    async def progress(self, updates: Sequence[ProgressUpdate]) -> list[bool]: ...

    async def park(self, parkings: Sequence[Parking]) -> list[bool]:
        """Give jobs up without ending them; they are claimable again after `wake_in` seconds."""
        ...

    async def release(self, releases: Sequence[Release]) -> list[bool]:
        """Hand jobs back, uncounted."""
        ...

    async def cancel(self, job_id: JobId, *, actor: str, reason: str = "") -> Cancelled:
        """End a job at once and for good; InvalidState when it is over already in another way."""
        ...

    async def job(self, job_id: JobId) -> JobView: ...

    async def farewell(self, worker: str, session: UUID) -> None:
        """A worker leaves in order."""
        ...
