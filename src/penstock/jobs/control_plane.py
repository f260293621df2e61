"""What handlers ask of the control plane besides the kernel's verbs.

The base of each workload's client. Calls are retried while the control plane is away: a job that
has just begun would otherwise spend an attempt on it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.jobs import wire
from penstock.jobs.handler import Stop, Stopped
from penstock.jobs.http_store import ANSWER_SECONDS, HttpJobStore
from penstock.kit.backoff import retrying
from penstock.kit.errors import InvalidInput, StaleAttempt
from penstock.kit.watched_file import WatchedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.jobs.model import Fence, JobId, JobView
    from penstock.kit.control_plane import Credential
    from penstock.kit.json_value import JsonObject
    from penstock.kit.settings import ControlPlaneSettings

RETRY_SECONDS = 300.0
CONCURRENT_CALLS = 8


class ControlPlaneClient(HttpJobStore):
    """`async with connect() as control_plane:`, for as long as a handler has questions."""

    async def source(self, fence: Fence, side: str | None = None) -> JsonObject:
        """The credentials of the source of a job that we hold; raises Stopped if the job was
        lost.
        """
        body = {"attempt_id": fence.attempt_id} | ({} if side is None else {"side": side})
        try:
            credentials: JsonObject = await retrying(
                "source",
                lambda: self._post(f"{fence.job_id}/source", body),
                seconds=RETRY_SECONDS,
            )
        except StaleAttempt:
            raise Stopped(Stop.LOST) from None
        return credentials

    async def jobs(self, job_ids: Sequence[JobId]) -> list[JobView]:
        slots = asyncio.Semaphore(CONCURRENT_CALLS)

        async def view(job_id: JobId) -> JobView:
            async with slots:
                return await retrying("job", lambda: self.job(job_id), seconds=RETRY_SECONDS)

        return await asyncio.gather(*(view(job_id) for job_id in job_ids))

    async def _internal(
        self, method: str, path: str, body: wire.Document | None = None, *, wait: float = 0
    ) -> Any:
        """Call `/api/internal/{path}`, retrying while the control plane is away.

        `wait` is for how long the answer may be held back.
        """
        address = f"{self._url}/api/internal/{path}"
        content = None if body is None else wire.encode(body)
        answer = ANSWER_SECONDS + wait
        return await retrying(
            path,
            lambda: self._call(method, address, content=content, answer_seconds=answer),
            seconds=RETRY_SECONDS,
        )


C = TypeVar("C", bound=HttpJobStore)


def client_factory(settings: ControlPlaneSettings, client: type[C]) -> Callable[[], C]:
    """Makes clients of the control plane that the settings name."""
    token = _token(settings)
    return lambda: client(settings.control_plane_url, token)


def _token(settings: ControlPlaneSettings) -> Credential:
    if settings.service_token_file is not None:
        return WatchedFile(settings.service_token_file).read
    if settings.service_token is None:
        raise InvalidInput(
            "A worker needs the service token of its control plane.",
            hint="Set PENSTOCK_SERVICE_TOKEN, or PENSTOCK_SERVICE_TOKEN_FILE.",
        )
    return settings.service_token.get_secret_value()
