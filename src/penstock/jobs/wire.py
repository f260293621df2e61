"""The kernel's values as JSON, between workers and the control plane over the internal API.

Each value has a `dump_` for its sender and, where a worker receives it, a `load_`. What the control
plane receives is validated by `http_bodies`. A payload and a parked state are never parsed on their
way out of the database.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import orjson

from penstock.jobs.model import (
    AttemptView,
    Beat,
    Cancelled,
    Claimed,
    Ending,
    Enqueued,
    Fence,
    JobView,
    Json,
    Parking,
    ProgressUpdate,
    Registered,
    Registration,
    Release,
    Renewal,
    Status,
    Succeeded,
)
from penstock.jobs.row_mapping import spec_to_json
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.jobs.model import JobSpec

Document: TypeAlias = dict[str, Any]
_MOMENTS = ("created_at", "claimed_at", "lease_until", "wake_at", "deadline", "finished_at")
_CLAIMED = (
    "kind",
    "attempt_no",
    "max_attempts",
    "lease_seconds",
    "seconds_left",
    "waited",
    "queue",
    "polls",
    "group_id",
    "lock_key",
    "trace",
)


def encode(value: Json) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_UTC_Z)
    except TypeError as e:
        raise InvalidInput(f"This cannot be written as JSON: {e}.") from None


# what a worker says


def dump_fence(fence: Fence) -> Document:
    return {"job_id": fence.job_id, "attempt_id": str(fence.attempt_id)}


def dump_spec(spec: JobSpec) -> Document:
    document: Document = spec_to_json(spec)
    return document


def dump_ending(ending: Ending) -> Document:
    outcome = ending.outcome
    if isinstance(outcome, Succeeded):
        spawn = [dump_spec(s) for s in outcome.spawn]
        document: Document = {"status": "succeeded", "result": outcome.result, "spawn": spawn}
    else:
        document = {"status": "failed", "error": outcome.error, "retry_in": outcome.retry_in}
    return dump_fence(ending.fence) | document


def dump_parking(parking: Parking) -> Document:
    document = {"state": parking.state, "wake_in": parking.wake_in}
    if parking.unhandled:
        document["unhandled"] = True
    return dump_fence(parking.fence) | document


def dump_release(release: Release) -> Document:
    return dump_fence(release.fence) | {"reason": release.reason}


def dump_progress(update: ProgressUpdate) -> Document:
    return dump_fence(update.fence) | {"progress": update.progress}


def dump_registration(registration: Registration | Beat) -> Document:
    return {
        "worker": registration.worker,
        "session": registration.session,
        "queues": list(registration.queues),
        "slots": registration.slots,
        "version": registration.version,
    }


def dump_beat(beat: Beat) -> Document:
    return dump_registration(beat) | {"held": [dump_fence(f) for f in beat.held]}


# what the control plane answers, and how a worker reads it


def dump_enqueued(enqueued: Enqueued) -> Document:
    return {"job_id": enqueued.job_id, "created": enqueued.created}


def dump_registered(registered: Registered) -> Document:
    return {
        "requeued": registered.requeued,
        "failed": registered.failed,
        "shared": registered.shared,
    }


def dump_cancelled(cancelled: Cancelled) -> Document:
    return {"job_id": cancelled.job_id, "newly": cancelled.newly}


def dump_claimed(claimed: Claimed) -> Document:
    document: Document = {name: getattr(claimed, name) for name in (*_CLAIMED, "unhandled")}
    state = None if claimed.raw_state is None else orjson.Fragment(claimed.raw_state)
    return (
        dump_fence(claimed.fence)
        | document
        | {"payload": orjson.Fragment(claimed.raw_payload), "state": state}
    )


def load_claimed(document: Document) -> Claimed:
    state = document["state"]
    return Claimed(
        fence=load_fence(document),
        raw_payload=encode(document["payload"]).decode(),
        raw_state=None if state is None else encode(state).decode(),
        unhandled=document.get(
            "unhandled", 0
        ),  # a control plane of an older release does not count it
        **{name: document[name] for name in _CLAIMED},
    )


def load_fence(document: Document) -> Fence:
    return Fence(job_id=document["job_id"], attempt_id=UUID(document["attempt_id"]))


def dump_renewal(renewal: Renewal) -> Document:
    return {
        "lost": [dump_fence(f) for f in renewal.lost],
        "cancelled": [dump_fence(f) for f in renewal.cancelled],
        "superseded": renewal.superseded,
    }


def load_renewal(document: Document) -> Renewal:
    return Renewal(
        lost=[load_fence(f) for f in document["lost"]],
        cancelled=[load_fence(f) for f in document["cancelled"]],
        superseded=document["superseded"],
    )


def dump_job(view: JobView) -> Document:
    document: Document = {name: getattr(view, name) for name in JobView.__slots__}
    return document | {
        "status": view.status.name.lower(),
        "attempts": [_dump_attempt(a) for a in view.attempts],
    }


def load_job(document: Document) -> JobView:
    moments = {name: _moment(document[name]) for name in _MOMENTS}
    attempts = [_load_attempt(a) for a in document["attempts"]]
    return JobView(
        **(
            document
            | moments
            | {"status": Status[document["status"].upper()], "attempts": attempts}
        )
    )


def _dump_attempt(view: AttemptView) -> Document:
    document: Document = {name: getattr(view, name) for name in AttemptView.__slots__}
    return document | {"attempt_id": None if view.attempt_id is None else str(view.attempt_id)}


def _load_attempt(document: Document) -> AttemptView:
    moments = {name: _moment(document[name]) for name in ("claimed_at", "ended_at")}
    attempt_id = document["attempt_id"]
    return AttemptView(
        **(document | moments | {"attempt_id": None if attempt_id is None else UUID(attempt_id)})
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
