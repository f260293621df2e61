"""An export job as the export worker API shows it: a kernel job with that API's statuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import orjson

from penstock.graphs.snapshots.payloads import ExportPayload, QueryState
from penstock.jobs.model import Status

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    import asyncpg

    from penstock.kit.json_value import JsonObject

Word: TypeAlias = Literal["pending", "claimed", "submitted", "completed", "failed"]
WORDS: tuple[Word, ...] = ("pending", "claimed", "submitted", "completed", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportJob:
    """`attempt_id` is set only in the answer to the worker that claimed the job."""

    job_id: int
    order: ExportPayload
    status: Word
    group_id: int | None
    attempts: int
    created_at: datetime
    claimed_by: str | None
    claimed_at: datetime | None
    attempt_id: UUID | None
    lease_seconds: int
    query: QueryState | None
    next_poll_at: datetime | None
    completed_at: datetime | None
    row_count: int | None
    size_bytes: int | None
    rows_so_far: int | None
    error_message: str | None


def word(status: Status, polls: int) -> Word:
    """The API's status; a job that was parked once stays `submitted` while its query runs."""
    match status:
        case Status.SUCCEEDED:
            return "completed"
        case Status.FAILED | Status.CANCELLED:
            return "failed"
        case _ if polls:
            return "submitted"
        case Status.RUNNING:
            return "claimed"
        case _:
            return "pending"


def export_job(row: asyncpg.Record) -> ExportJob:
    result, progress = _object(row["result"]), _object(row["progress"])
    return ExportJob(
        job_id=row["job_id"],
        order=ExportPayload.read(orjson.loads(row["payload"])),
        status=word(Status(row["status"]), row["polls"]),
        group_id=row["group_id"],
        attempts=row["attempt_no"],
        created_at=row["created_at"],
        claimed_by=row["worker"],
        claimed_at=row["claimed_at"],
        attempt_id=row["attempt_id"],
        lease_seconds=row["lease_s"],
        query=QueryState.read(_object(row["state"]) or _object(result.get("query"))),
        next_poll_at=row["wake_at"],
        completed_at=row["finished_at"],
        row_count=whole(result.get("row_count")),
        size_bytes=whole(result.get("size_bytes")),
        rows_so_far=whole(progress.get("rows")),
        error_message=message(None if row["error"] is None else orjson.loads(row["error"])),
    )


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def message(error: object) -> str | None:
    """The message and the hint of a job's error, for people."""
    if error is None:
        return None
    if not isinstance(error, dict):
        return str(error)
    parts = (
        error.get("message") or error.get("code") or "It failed without an error message.",
        error.get("hint"),
    )
    return " ".join(str(part) for part in parts if part)


def _object(value: object) -> JsonObject:
    loaded = orjson.loads(value) if isinstance(value, str) else value
    return loaded if isinstance(loaded, dict) else {}
