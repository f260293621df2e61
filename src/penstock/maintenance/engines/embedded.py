"""The embedded engine: PyIceberg and Arrow, in this process."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import duckdb
import pyarrow as pa

from penstock.kit import logging
from penstock.kit.errors import InvalidInput, PenstockError, Unavailable
from penstock.maintenance.actions.budget import TOO_SMALL
from penstock.maintenance.actions.compaction import Compaction
from penstock.maintenance.actions.delete_rewrite import DeleteRewrite
from penstock.maintenance.actions.expiry import Expiry
from penstock.maintenance.actions.manifest_rewrite import ManifestRewrite
from penstock.maintenance.actions.model import Action, Ended, Name, Outcome
from penstock.maintenance.actions.orphans import Orphans
from penstock.maintenance.actions.probe import proven
from penstock.maintenance.errors import (
    CommitConflict,
    CommitUnknown,
    ContentDiffers,
    NoSuchTable,
    Refused,
    TableUnreadable,
    UnreadableFile,
)
from penstock.maintenance.tables.content import ManifestReader
from penstock.maintenance.tables.protection import check_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.tables.table_access import TableAccess

log = logging.get(__name__)
MAX_FILES_TOLD = 1000
"""A plan names every file up to here, and counts the rest."""


class Work(Protocol):
    def plan(self) -> Outcome: ...

    def execute(self) -> Outcome: ...


class _Compacting:
    """Compaction with its plan in the shape of all the others; it needs the probe."""

    def __init__(self, lake: TableAccess, run: Run, action: Action, reader: ManifestReader) -> None:
        self._work = Compaction(lake, run, action, reader)

    def plan(self) -> Outcome:
        plan = self._work.plan()
        return Outcome(
            action=Name.REWRITE_DATA_FILES,
            status=Ended.PLANNED if plan.groups else Ended.NOTHING_TO_DO,
            rewritten_files=len(plan.files),
            rewritten_bytes=plan.bytes,
            added_files=plan.expected_files,
            skipped=plan.skipped,
            files=plan.files,
            message=TOO_SMALL if "budget" in plan.skipped and not plan.groups else "",
        )

    def execute(self) -> Outcome:
        if not proven():
            raise Refused(
                "The conflict check did not prove itself at start-up; this process does not compact."
            )
        return self._work.execute()


def _work(lake: TableAccess, run: Run, action: Action, reader: ManifestReader) -> Work:
    match action.name:
        case Name.EXPIRE_SNAPSHOTS:
            return Expiry(lake, run, action)
        case Name.REWRITE_DATA_FILES:
            return _Compacting(lake, run, action, reader)
        case Name.REWRITE_POSITION_DELETE_FILES:
            return DeleteRewrite(lake, run, action, reader)
        case Name.REWRITE_MANIFESTS:
            return ManifestRewrite(lake, run, action, reader)
        case Name.REMOVE_ORPHAN_FILES:
            return Orphans(lake, run, action)


def plan(lake: TableAccess, run: Run, action: Action) -> Outcome:
    """What the action would do to the table as it is now; nothing is written."""
    return _guarded(lake, run, action, lambda work: work.plan(), measured=False)


def execute(lake: TableAccess, run: Run, action: Action) -> Outcome:
    """Do it. What the table refuses or another writer prevents is an outcome, not an error."""
    run = replace(run, started=run.ticks())
    return _guarded(lake, run, action, lambda work: work.execute(), measured=True)


def _guarded(
    lake: TableAccess, run: Run, action: Action, act: Callable[[Work], Outcome], *, measured: bool
) -> Outcome:
    started = time.monotonic()
    table = lake.load()
    reader = ManifestReader(table.io)
    before: dict[str, int] = {}
    try:
        check_table(table, action.name)
        before = _measured(table, reader) if measured else {}
        outcome = act(_work(lake, run, action, reader))
    except (Refused, InvalidInput) as e:
        outcome = Outcome(action=action.name, status=Ended.REFUSED, message=_message(e))
    except CommitConflict as e:
        outcome = Outcome(action=action.name, status=Ended.ABANDONED, message=_message(e))
    except CommitUnknown as e:
        outcome = Outcome(action=action.name, status=Ended.UNKNOWN, message=_message(e))
    except (ContentDiffers, TableUnreadable, UnreadableFile, Unavailable) as e:
        outcome = Outcome(action=action.name, status=Ended.FAILED, message=_message(e))
    except FileNotFoundError as e:
        message = f"A file of the table is not there: {e}"
        outcome = Outcome(action=action.name, status=Ended.FAILED, message=message)
    except (pa.ArrowException, duckdb.Error) as e:
        log.exception("action_failed", job_id=run.job_id, action=action.name)
        message = f"The rows cannot be processed: {type(e).__name__}: {str(e)[:300]}"
        outcome = Outcome(action=action.name, status=Ended.FAILED, message=message)
    except OSError as e:
        message = f"The storage failed: {e}"
        outcome = Outcome(action=action.name, status=Ended.FAILED, message=message)
    after = _measured_after(lake, run, reader) if measured and before else {}
    log.info(
        "action_ended",
        job_id=run.job_id,
        action=action.name,
        status=outcome.status,
        message=outcome.message,
    )
    return replace(
        outcome,
        before=before,
        after=after,
        files=outcome.files[:MAX_FILES_TOLD],
        files_left_out=max(0, len(outcome.files) - MAX_FILES_TOLD),
        seconds=round(time.monotonic() - started, 3),
    )


def _measured(table: Table, reader: ManifestReader) -> dict[str, int]:
    try:
        return measure(table, reader)
    except FileNotFoundError as e:
        raise TableUnreadable(f"The table names a file which is not there: {e}") from e


def _measured_after(lake: TableAccess, run: Run, reader: ManifestReader) -> dict[str, int]:
    """Nothing where it cannot be measured: what was done stays done."""
    try:
        return measure(lake.load(), reader)
    except (OSError, NoSuchTable, TableUnreadable, Unavailable) as e:
        log.warning("table_not_measured", job_id=run.job_id, error=str(e))
        return {}


def measure(table: Table, reader: ManifestReader | None = None) -> dict[str, int]:
    """Files, bytes and rows as the table has them now; measured, never inferred."""
    snapshot = table.metadata.current_snapshot()
    counts = {
        "snapshots": len(table.metadata.snapshots),
        "metadata_files": 1 + len(table.metadata.metadata_log),
    }
    if snapshot is None:
        return counts
    content = (reader or ManifestReader(table.io)).content(snapshot)
    return counts | {
        "files": len(content.data),
        "bytes": content.bytes,
        "rows": content.rows,
        "delete_files": len(content.deletes),
        "manifests": len(content.manifests),
    }


def _message(error: PenstockError) -> str:
    return error.message if error.hint is None else f"{error.message} {error.hint}"
