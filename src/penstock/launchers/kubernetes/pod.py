"""What the launcher reads of a pod, out of the JSON of the API server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Manifest: TypeAlias = "dict[str, Any]"
"""An object as the API server reads and writes it."""
CONTAINER = "graph-server"
SECRETS = "secrets"
"""The name of the volume with the run's secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    type: str
    is_true: bool
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """State of the server's container; `code` is None until it has ended."""

    waiting: str = ""
    message: str = ""
    code: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    name: str
    uid: str
    version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created: float
    """Seconds since 1970, by the clock of the server."""
    gone_at: float | None
    """When it is to be gone; set once it was deleted."""
    phase: str
    reason: str
    message: str
    ip: str | None
    node: str
    secret: str
    """The name of the secret that it mounts."""
    conditions: tuple[Condition, ...]
    container: Container

    @property
    def is_over(self) -> bool:
        """Whether the server has ended; containers beside it may still run."""
        return self.phase in ("Succeeded", "Failed") or self.container.code is not None

    def condition(self, kind: str) -> Condition | None:
        return next((c for c in self.conditions if c.type == kind), None)


def read(document: Mapping[str, Any]) -> Pod:
    metadata, spec = document["metadata"], document.get("spec") or {}
    status = document.get("status") or {}
    deleted = metadata.get("deletionTimestamp")
    return Pod(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        version=metadata.get("resourceVersion", ""),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        created=_moment(metadata["creationTimestamp"]),
        gone_at=None if deleted is None else _moment(deleted),
        phase=status.get("phase", "Pending"),
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        ip=status.get("podIP"),
        node=spec.get("nodeName") or "",
        secret=_secret(spec.get("volumes") or ()),
        conditions=tuple(map(_condition, status.get("conditions") or ())),
        container=_container(status.get("containerStatuses") or ()),
    )


def _secret(volumes: Any) -> str:
    mounted = (volume.get("secret") or {} for volume in volumes if volume.get("name") == SECRETS)
    return next((secret.get("secretName", "") for secret in mounted), "")


def _condition(document: Mapping[str, Any]) -> Condition:
    return Condition(
        type=document["type"],
        is_true=document.get("status") == "True",
        reason=document.get("reason") or "",
        message=document.get("message") or "",
    )


def _container(statuses: Any) -> Container:
    """A patch of the operator, or the cluster itself, may have added others."""
    states = (s.get("state") for s in statuses if s.get("name") == CONTAINER)
    state = next(states, None) or {}
    if terminated := state.get("terminated"):
        return Container(
            code=terminated.get("exitCode"),
            reason=terminated.get("reason") or "",
            message=terminated.get("message") or "",
        )
    waiting = state.get("waiting") or {}
    return Container(waiting=waiting.get("reason") or "", message=waiting.get("message") or "")


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
