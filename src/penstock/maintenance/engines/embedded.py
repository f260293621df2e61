"""The embedded engine: plans and runs an action with PyIceberg and Arrow in this process.

`handlers` calls it in a thread of a worker, `service` for a dry run. It may write and delete files
of the table, and commits through the `TableAccess` that it is given.
"""

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
from penstock.maintenance.tables.commit.protection import check_table
from penstock.maintenance.tables.reading.content import ManifestReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.tables.catalog.table_access import TableAccess

log = logging.get(__name__)
MAX_FILES_LISTED = 1000
"""An outcome lists at most this many files and counts the rest."""


class Work(Protocol):
    def plan(self) -> Outcome: ...

    def execute(self) -> Outcome: ...


class _Compacting:
    """Adapts Compaction to `Work`; requires that the start-up probe passed."""

    def __init__(
        self,
        table_access: TableAccess,
        context: ActionContext,
        action: Action,
        reader: ManifestReader,
    ) -> None:
        self._work = Compaction(table_access, context, action, reader)

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
                "The start-up probe of the conflict check failed; this process does not compact.",
                hint="See the log event probe_failed or probe_refused of this worker.",
            )
        return self._work.execute()


def _work(
    table_access: TableAccess, context: ActionContext, action: Action, reader: ManifestReader
) -> Work:
    match action.name:
        case Name.EXPIRE_SNAPSHOTS:
            return Expiry(table_access, context, action)
        case Name.REWRITE_DATA_FILES:
            return _Compacting(table_access, context, action, reader)
        case Name.REWRITE_POSITION_DELETE_FILES:
            return DeleteRewrite(table_access, context, action, reader)
        case Name.REWRITE_MANIFESTS:
            return ManifestRewrite(table_access, context, action, reader)
        case Name.REMOVE_ORPHAN_FILES:
            return Orphans(table_access, context, action)


def plan(table_access: TableAccess, context: ActionContext, action: Action) -> Outcome:
    """What the action would do to the current table; nothing is written."""
    return _guarded(table_access, context, action, lambda work: work.plan(), measured=False)


def execute(table_access: TableAccess, context: ActionContext, action: Action) -> Outcome:
    """Run the action. A refusal or a conflict with another writer is an outcome, not an error."""
    context = replace(context, started=context.ticks())
    return _guarded(table_access, context, action, lambda work: work.execute(), measured=True)


def _guarded(
    table_access: TableAccess,
    context: ActionContext,
    action: Action,
    act: Callable[[Work], Outcome],
    *,
    measured: bool,
) -> Outcome:
    started = time.monotonic()
    table = table_access.load()
    reader = ManifestReader(table.io)
    before: dict[str, int] = {}
    try:
        check_table(table, action.name)
        before = _measured(table, reader) if measured else {}
        outcome = act(_work(table_access, context, action, reader))
    except (Refused, InvalidInput) as e:
        outcome = Outcome(action=action.name, status=Ended.REFUSED, message=_message(e))
    except CommitConflict as e:
        outcome = Outcome(action=action.name, status=Ended.ABANDONED, message=_message(e))
    except CommitUnknown as e:
        outcome = Outcome(action=action.name, status=Ended.UNKNOWN, message=_message(e))
    except (ContentDiffers, TableUnreadable, UnreadableFile, Unavailable) as e:
        outcome = Outcome(action=action.name, status=Ended.FAILED, message=_message(e))
    except FileNotFoundError as e:
        message = f"A file of the table is missing: {e}"
        outcome = Outcome(action=action.name, status=Ended.FAILED, message=message)
    except (pa.ArrowException, duckdb.Error) as e:
        log.exception("action_failed", job_id=context.job_id, action=action.name)
        message = f"The rows cannot be processed: {type(e).__name__}: {str(e)[:300]}"
        outcome = Outcome(action=action.name, status=Ended.FAILED, message=message)
    except OSError as e:
        message = f"The storage failed: {e}"
        outcome = Outcome(action=action.name, status=Ended.FAILED, message=message)
    after = _measured_after(table_access, context, reader) if measured and before else {}
    log.info(
        "action_ended",
        job_id=context.job_id,
        action=action.name,
        status=outcome.status,
        message=outcome.message,
    )
    return replace(
        outcome,
        before=before,
        after=after,
        files=outcome.files[:MAX_FILES_LISTED],
        files_left_out=max(0, len(outcome.files) - MAX_FILES_LISTED),
        seconds=round(time.monotonic() - started, 3),
    )


def _measured(table: Table, reader: ManifestReader) -> dict[str, int]:
    try:
        return measure(table, reader)
    except FileNotFoundError as e:
        raise TableUnreadable(f"The table references a missing file: {e}") from e


def _measured_after(
    table_access: TableAccess, context: ActionContext, reader: ManifestReader
) -> dict[str, int]:
    """Empty if the table cannot be read; the action's outcome stands anyway."""
    try:
        return measure(table_access.load(), reader)
    except (OSError, NoSuchTable, TableUnreadable, Unavailable) as e:
        log.warning("table_not_measured", job_id=context.job_id, error=str(e))
        return {}


def measure(table: Table, reader: ManifestReader | None = None) -> dict[str, int]:
    """Files, bytes and rows of the current table."""
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
