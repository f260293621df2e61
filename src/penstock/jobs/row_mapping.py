"""Maps database rows to the kernel's values, and values to parameters."""

from __future__ import annotations

import re
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import orjson

from penstock.jobs.model import (
    AttemptView,
    Claimed,
    Fence,
    GroupSpec,
    JobSpec,
    JobView,
    Json,
    Status,
)
from penstock.kit.errors import InvalidInput, PayloadTooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    import asyncpg

_SPANS = ("run_in", "deadline_in", "timeout")
STATUS_WORDS = {int(status): status.word for status in Status}
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def dump(value: Json, what: str, limit: int) -> str:
    """JSON text that PostgreSQL takes, within the limit; or an error that says which of the two it
    is not."""
    try:
        raw = orjson.dumps(value)
    except TypeError as e:
        raise InvalidInput(f"The {what} cannot be written as JSON: {e}.") from None
    if len(raw) > limit:
        raise PayloadTooLarge(
            f"The {what} has {len(raw):,} bytes; at most {limit:,} are taken.", limit=limit
        )
    if b"\\u0000" in raw and _NUL.search(raw):
        raise InvalidInput(f"The {what} holds a NUL character, which cannot be stored.")
    return raw.decode()


def column(values: list[str | None]) -> list[str | None] | None:
    """A parameter for `unnest`. None stands for a column without values: as many NULLs take time to
    encode."""
    return None if values.count(None) == len(values) else values


CLAIM_COLUMNS = 5
"""Of `exchange.sql`, up to the fence; those after them are the rest of `Claimed`, in its order."""


def claimed(row: asyncpg.Record, queue: str) -> Claimed:
    return Claimed(Fence(row["job_id"], row["attempt_id"]), queue, *row[CLAIM_COLUMNS:])


def _parsed(text: str | None) -> Json:
    return None if text is None else orjson.loads(text)


def job_view(row: asyncpg.Record, attempts: Sequence[AttemptView] = ()) -> JobView:
    values: dict[str, Any] = dict(row)
    for name in ("payload", "progress", "result", "error"):
        values[name] = _parsed(values[name])
    values["status"] = Status(values["status"])
    return JobView(**values, attempts=attempts)


_LISTED = (
    "job_id",
    "kind",
    "queue",
    "priority",
    "status",
    "attempt_no",
    "max_attempts",
    "created_at",
    "created_by",
    "group_id",
    "lock_key",
    "unique_key",
    "retry_of",
    "worker",
    "claimed_at",
    "lease_until",
    "wake_at",
    "deadline",
    "finished_at",
    "polls",
    "progress",
    "error",
)
_SHOWN = ("id", *_LISTED[1:])
_listed = itemgetter(*_LISTED)


def job_summary(row: asyncpg.Record) -> dict[str, Json]:
    """A job in a list, as it is sent: what the database has as JSON is not parsed on its way."""
    document: dict[str, Json] = dict(zip(_SHOWN, _listed(row), strict=True))
    document["status"] = STATUS_WORDS[document["status"]]
    for name in ("progress", "error"):
        if document[name] is not None:
            document[name] = orjson.Fragment(document[name])
    return document


def attempt_view(row: asyncpg.Record) -> AttemptView:
    values: dict[str, Any] = dict(row)
    values["detail"] = _parsed(values["detail"])
    return AttemptView(**values)


def spec_to_json(spec: JobSpec) -> Json:
    """Only what is set: a stored spec takes the defaults of the day it is enqueued."""
    bare = JobSpec(kind=spec.kind)
    changed = {
        name: getattr(spec, name)
        for name in JobSpec.__slots__
        if getattr(spec, name) != getattr(bare, name)
    }
    seconds = {
        name: value.total_seconds()
        for name, value in changed.items()
        if isinstance(value, timedelta)
    }
    return {"kind": spec.kind} | changed | seconds


def spec_from_json(value: Json) -> JobSpec:
    spans = {name: timedelta(seconds=value[name]) for name in _SPANS if value.get(name) is not None}
    return JobSpec(**(value | spans))


def spec_again(row: asyncpg.Record, actor: str) -> JobSpec:
    """The same work as a new job, without its group and unique key, which are taken."""
    deadline = row["deadline_at"]
    return JobSpec(
        kind=row["kind"],
        payload=_parsed(row["payload"]),
        queue=row["queue"],
        priority=row["priority"],
        max_attempts=row["max_attempts"],
        timeout=timedelta(seconds=row["timeout_s"]),
        deadline_in=None if deadline is None else deadline - row["created_at"],
        lock_key=row["lock_key"],
        unique_key=f"retry:{row['job_id']}",
        retry_of=row["job_id"],
        created_by=actor,
        trace=row["trace"],
    )


def opens_to_json(group: GroupSpec) -> Json:
    return {
        "success": [spec_to_json(s) for s in group.on_success],
        "failure": [spec_to_json(s) for s in group.on_failure],
    }
