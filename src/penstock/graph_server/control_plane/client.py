"""HTTP client of a graph server for its control plane: progress, status, activity and the
mapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

import orjson

from penstock.kit import logging
from penstock.kit.backoff import retrying
from penstock.kit.control_plane import ControlPlaneHttp
from penstock.kit.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.graphs.mappings.definition import EdgeDocument, NodeDocument
    from penstock.kit.control_plane import Credential

log = logging.get(__name__)
ANSWER_SECONDS = 10.0
PATIENCE_SECONDS = 120.0
MOST_MESSAGE = 2000


class _ToLoad(TypedDict):
    """What is read of the answer to `GET mapping`."""

    snapshot_id: int
    mapping_id: NotRequired[int | None]
    mapping_version: NotRequired[int | None]
    owner_username: NotRequired[str]
    prefix: NotRequired[str]
    gcs_path: str
    node_definitions: list[NodeDocument]
    edge_definitions: list[EdgeDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What this instance serves, as the control plane has it; `location` is a URL, or a place in
    the storage."""

    snapshot_id: int
    mapping_id: int | None
    mapping_version: int | None
    owner_username: str
    location: str
    node_definitions: tuple[NodeDocument, ...]
    edge_definitions: tuple[EdgeDocument, ...]

    @classmethod
    def read(cls, document: _ToLoad) -> Assignment:
        return cls(
            snapshot_id=document["snapshot_id"],
            mapping_id=document.get("mapping_id"),
            mapping_version=document.get("mapping_version"),
            owner_username=document.get("owner_username", ""),
            location=document.get("prefix") or document["gcs_path"],
            node_definitions=tuple(document["node_definitions"]),
            edge_definitions=tuple(document["edge_definitions"]),
        )


class InstanceControlPlane(ControlPlaneHttp):
    """`async with InstanceControlPlane(url, token, instance_id) as control_plane:`. Reports that
    must arrive are sent until they do."""

    def __init__(self, url: str, token: Credential, instance_id: int) -> None:
        super().__init__(
            url,
            token,
            component="wrapper",
            path=f"instances/{instance_id}",
            answer_seconds=ANSWER_SECONDS,
        )

    async def assignment(self) -> Assignment:
        return Assignment.read(cast("_ToLoad", await self._patiently("GET", "mapping")))

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
        self, *, phase: str, current_step: str | None, steps: Sequence[Mapping[str, object]]
    ) -> None:
        await self._quietly(
            "PUT", "progress", {"phase": phase, "current_step": current_step, "steps": steps}
        )

    async def metrics(self, body: Mapping[str, object]) -> bool:
        return await self._quietly("PUT", "metrics", body)

    async def activity(self) -> bool:
        return await self._quietly("POST", "activity")

    async def _quietly(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> bool:
        """Worth one try: the next one says it better."""
        try:
            await self._send(method, path, body)
        except PenstockError as e:
            log.warning("report_not_taken", what=path, code=e.code, message=e.message)
            return False
        return True

    async def _patiently(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> object:
        return await retrying(
            path, lambda: self._send(method, path, body), seconds=PATIENCE_SECONDS
        )

    async def _send(self, method: str, path: str, body: Mapping[str, object] | None) -> object:
        content = None if body is None else orjson.dumps(body)
        return await self._call(method, path, content=content)
