"""HTTP client of a graph server for its control plane: progress, status, activity and the
mapping."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import orjson

from penstock.kit import logging
from penstock.kit.errors import Internal, PenstockError, Unavailable, rebuild

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

log = logging.get(__name__)
ANSWER_SECONDS = 10.0
PATIENCE_SECONDS = 120.0
MOST_MESSAGE = 2000
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What this instance serves, as the control plane has it; `location` is a URL, or a place in
    the storage."""

    snapshot_id: int
    mapping_id: int | None
    mapping_version: int | None
    owner_username: str
    location: str
    node_definitions: tuple[Mapping[str, Any], ...]
    edge_definitions: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Assignment:
        return cls(
            snapshot_id=document["snapshot_id"],
            mapping_id=document.get("mapping_id"),
            mapping_version=document.get("mapping_version"),
            owner_username=document.get("owner_username", ""),
            location=document.get("prefix") or document["gcs_path"],
            node_definitions=tuple(document["node_definitions"]),
            edge_definitions=tuple(document["edge_definitions"]),
        )


class ControlPlaneClient:
    """`async with Plane(url, token, instance_id) as plane:`. Reports that must arrive are sent
    until they do."""

    def __init__(self, url: str, token: str, instance_id: int) -> None:
        self._url = url.rstrip("/")
        self._http = httpx2.AsyncClient(
            base_url=f"{self._url}/api/internal/instances/{instance_id}",
            headers={
                "Authorization": f"Bearer {token}",
                "X-Component": "wrapper",
                "Content-Type": "application/json",
            },
            timeout=httpx2.Timeout(ANSWER_SECONDS, connect=5.0),
            trust_env=False,
        )

    async def __aenter__(self) -> ControlPlaneClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def assignment(self) -> Assignment:
        return Assignment.read(await self._patiently("GET", "mapping"))

    async def running(self, *, node_count: int, edge_count: int) -> None:
        stats = {"node_count": node_count, "edge_count": edge_count}
        await self._patiently("PUT", "status", {"status": "running", "graph_stats": stats})

    async def failed(self, *, error_code: str, message: str, phase: str, trace: str) -> None:
        body = {
            "status": "failed",
            "error_code": error_code,
            "error_message": message[:MOST_MESSAGE],
            "failed_phase": phase,
            "stack_trace": trace,
        }
        await self._patiently("PUT", "status", body)

    async def progress(
        self, *, phase: str, current_step: str | None, steps: Sequence[Mapping[str, Any]]
    ) -> None:
        await self._quietly(
            "PUT", "progress", {"phase": phase, "current_step": current_step, "steps": steps}
        )

    async def metrics(self, body: Mapping[str, Any]) -> bool:
        return await self._quietly("PUT", "metrics", body)

    async def activity(self) -> bool:
        return await self._quietly("POST", "activity")

    async def _quietly(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bool:
        """Worth one try: the next one says it better."""
        try:
            await self._call(method, path, body)
        except PenstockError as e:
            log.warning("report_not_taken", what=path, code=e.code, message=e.message)
            return False
        return True

    async def _patiently(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Any:
        until = time.monotonic() + PATIENCE_SECONDS
        pauses = iter(_PAUSES)
        while True:
            try:
                return await self._call(method, path, body)
            except Unavailable:
                if time.monotonic() >= until:
                    raise
                await asyncio.sleep(next(pauses, _PAUSES[-1]))

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        content = None if body is None else orjson.dumps(body)
        try:
            answer = await self._http.request(method, path, content=content)
        except httpx2.TransportError as e:
            raise Unavailable(
                f"The control plane at {self._url} is unreachable ({type(e).__name__})."
            ) from e
        if not answer.is_success:
            raise _error(answer)
        return orjson.loads(answer.content)["data"] if answer.content else None


def _error(answer: httpx2.Response) -> PenstockError:
    try:
        error = orjson.loads(answer.content)["error"]
        return rebuild(error["code"], error["message"], details=error["details"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = f"The control plane answered {answer.status_code} without an error envelope."
        return (
            Unavailable(message)
            if answer.is_server_error
            else Internal(message, hint="Is PENSTOCK_URL right?")
        )
