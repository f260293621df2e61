"""The result of staging: the parts of the plan attempt that ended, complete, or an error about what
is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from penstock.jobs.model import Status
from penstock.kit.errors import InvalidState
from penstock.reconcile.runs.payloads import STAGE_CHUNK, STAGE_PLAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import asyncpg

    from penstock.jobs.model import Json
    from penstock.kit.json_value import JsonObject


def parts_of(jobs: Sequence[asyncpg.Record], side: str) -> JsonObject:
    """The rows and files of one side. A plan that ran twice has two sets of chunks; those of the
    successful attempt count."""
    plan = _the_plan(jobs, side)
    planned = _loaded(plan["result"])
    chunks = {
        payload["number"]: _loaded(row["result"])
        for row, payload in _of(jobs, STAGE_CHUNK, side)
        if payload["plan"] == planned["plan"] and row["status"] == Status.SUCCEEDED
    }
    if sorted(chunks) != list(range(planned["chunks"])):
        raise InvalidState(
            f"The {side} side has {len(chunks)} of {planned['chunks']} chunks staged."
        )
    ordered = [chunks[number] for number in sorted(chunks)]
    return {
        "files": [part for chunk in ordered for part in chunk["files"]],
        "rows": sum(chunk["rows"] for chunk in ordered),
        "snapshot": planned.get("snapshot"),
        "chunks": planned["chunks"],
    }


def cause(jobs: Iterable[asyncpg.Record], otherwise: Json) -> JsonObject:
    """Why a group failed: the error of the job that failed first, not of those cancelled because of
    it."""
    failed = [row for row in jobs if row["status"] == Status.FAILED and row["error"] is not None]
    if failed:
        error = dict(_loaded(failed[0]["error"]))
        return error | {"job_id": failed[0]["job_id"], "step": failed[0]["kind"]}
    return (
        dict(otherwise)
        if isinstance(otherwise, dict)
        else {"code": "FAILED", "message": "A job did not succeed."}
    )


def _the_plan(jobs: Sequence[asyncpg.Record], side: str) -> asyncpg.Record:
    for row, _ in _of(jobs, STAGE_PLAN, side):
        if row["status"] == Status.SUCCEEDED:
            return row
    raise InvalidState(f"The {side} side has no plan that ended.")


def _of(
    jobs: Sequence[asyncpg.Record], kind: str, side: str
) -> list[tuple[asyncpg.Record, Mapping[str, Any]]]:
    pairs = [(row, _loaded(row["payload"])) for row in jobs if row["kind"] == kind]
    return [(row, payload) for row, payload in pairs if payload["side"] == side]


def _loaded(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)
