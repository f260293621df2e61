"""Whether the run of a pod is over, and why, in words for whoever owns the instance.

A pod that never runs is over too, once waiting makes no sense any more: an image that does not
exist does not appear by itself. Moments are the API server's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.launchers.contract import Ended

if TYPE_CHECKING:
    from penstock.launchers.kubernetes.pod import Container, Pod

LOST_SECONDS = 30.0
"""How long a deleted pod may stay beyond its own grace before its node counts as lost."""
_HOPELESS = frozenset({"ErrImageNeverPull", "InvalidImageName"})
_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"}) | _HOPELESS
_CONTAINER = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    schedule_seconds: float = 300.0
    image_seconds: float = 60.0


def ending(pod: Pod, now: float, patience: Patience, *, image: str) -> Ended | None:
    """How the run ended; None while it runs, or may still begin."""
    if pod.is_over:
        return _finished(pod)
    if pod.gone_at is not None:
        if not is_overdue(pod, now):
            return None
        where = f"node {pod.node}" if pod.node else "its node"
        return Ended(cause=f"The graph server was lost: {where} does not answer any more.")
    if pod.phase == "Pending":
        return _stuck(pod, now - pod.created, patience, image)
    return None


def is_overdue(pod: Pod, now: float) -> bool:
    """Whether a deleted pod should be gone since long: nobody on its node is there to say so."""
    return pod.gone_at is not None and now >= pod.gone_at + LOST_SECONDS


def removed(pod: Pod | None) -> Ended:
    """The ending of a pod that is no longer there, by the last that was seen of it."""
    if pod is None:
        return Ended(cause="The pod of the graph server is gone; somebody may have deleted it.")
    if pod.is_over:
        return _finished(pod)
    if (cause := _disruption(pod)) is not None:
        return Ended(cause=cause)
    return Ended(cause=f"The pod {pod.name} of the graph server was deleted by somebody else.")


def _finished(pod: Pod) -> Ended:
    container = pod.container
    code = None if container.code is None else _code(container.code)
    if container.reason == "OOMKilled":
        return Ended(code=code, oom=True)
    return Ended(code=code, cause=_cause(pod, container))


def _cause(pod: Pod, container: Container) -> str | None:
    """None if the exit code says all there is."""
    details = f": {pod.message}" if pod.message else "."
    match pod.reason:
        case "Evicted":
            return f"The node evicted the graph server{details}"
        case "NodeLost":
            return f"The graph server was lost with its node {pod.node}."
        case "NodeShutdown" | "Shutdown" | "Terminated":
            return f"The node of the graph server was shut down{details}"
        case "DeadlineExceeded":
            return "The graph server ran longer than its pod was allowed to."
        case "":
            pass
        case reason:
            return f"Node {pod.node} did not accept the graph server ({reason}){details}"
    if (cause := _disruption(pod)) is not None:
        return cause
    if container.reason in ("StartError", "ContainerCannotRun"):
        return f"The container could not be started: {container.message}"
    return None


def _disruption(pod: Pod) -> str | None:
    condition = pod.condition("DisruptionTarget")
    if condition is None or not condition.is_true:
        return None
    details = f": {condition.message}" if condition.message else "."
    match condition.reason:
        case "DeletionByTaintManager" | "DeletionByPodGC":
            return f"The graph server was lost with its node {pod.node}{details}"
        case "PreemptionByScheduler":
            return f"The graph server made room for a more important pod{details}"
    return f"The graph server was evicted{details}"


def _stuck(pod: Pod, waited: float, patience: Patience, image: str) -> Ended | None:
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and not scheduled.is_true:
        if waited < patience.schedule_seconds:
            return None
        return Ended(
            cause=f"No node had room for the graph server within {patience.schedule_seconds:g} s."
            f" The scheduler says: {scheduled.message or scheduled.reason}"
        )
    reason, message = pod.container.waiting, pod.container.message
    if reason in _IMAGE:
        if reason not in _HOPELESS and waited < patience.image_seconds:
            return None
        return Ended(cause=f"The image {image} cannot be had ({reason}): {message or 'no details'}")
    if reason in _CONTAINER and waited >= patience.image_seconds:
        return Ended(cause=f"The container cannot be started ({reason}): {message or 'no details'}")
    return None


def _code(exit_code: int) -> int:
    """A runtime adds 128 to the signal that ended a process."""
    return 128 - exit_code if 128 < exit_code < 160 else exit_code
