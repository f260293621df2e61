"""The start-up probe: before this process compacts anything, it shows on a table of its own that it
cannot bring deleted rows back, with the very library that is installed here.

A table of two files; a plan; then, behind its back, a position delete and another commit on top of
it. The replacement must be refused, and a plan made after that must yield the rows without the
deleted one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyiceberg.manifest import ManifestContent

from penstock.kit import logging
from penstock.kit.scratch import scratch_folder
from penstock.maintenance.actions.compaction import Compaction
from penstock.maintenance.actions.context import Run
from penstock.maintenance.actions.group_writer import GroupWriter
from penstock.maintenance.actions.model import Action, Ended, Name
from penstock.maintenance.tables.catalogs import CatalogConfig, open_catalog
from penstock.maintenance.tables.content import ManifestReader
from penstock.maintenance.tables.delete_file import write_deletes
from penstock.maintenance.tables.replacement import Abandoned, Change, NewFile, Replacement, commit
from penstock.maintenance.tables.table_access import CatalogTableAccess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import ManifestFile

    from penstock.maintenance.tables.content import Content
    from penstock.maintenance.tables.snapshot_draft import Draft
    from penstock.maintenance.tables.table_access import TableAccess

log = logging.get(__name__)
_FORCED = Action(name=Name.REWRITE_DATA_FILES, options={"rewrite_all": True})


@cache
def proven() -> bool:
    """Once a process."""
    try:
        with scratch_folder("probe") as folder:
            config = CatalogConfig(
                name="probe",
                type="sql",
                uri="sqlite://",
                properties={"warehouse": (folder / "warehouse").as_uri()},
            )
            catalog = open_catalog(config)
            try:
                result = _prove(catalog)
            finally:
                catalog.close()
    except Exception:
        log.exception("probe_failed")
        return False
    if not result:
        log.error(
            "probe_refused",
            hint="The installed PyIceberg does not behave as it must; nothing is compacted.",
        )
    return result


def _prove(catalog: Catalog) -> bool:
    catalog.create_namespace("probe")
    table = catalog.create_table("probe.rows", pa.schema([("id", pa.int64())]))
    for start in (0, 3):
        table.append(pa.table({"id": pa.array(range(start, start + 3), pa.int64())}))
    lake, run = CatalogTableAccess(catalog, ("probe", "rows")), Run(job_id=0, attempt=uuid4().hex)
    return _refuses_late(lake, run) and _keeps_deleted(lake, run)


def _refuses_late(lake: TableAccess, run: Run) -> bool:
    table, reader = lake.load(), ManifestReader(lake.load().io)
    plan = Compaction(lake, run, _FORCED).plan()
    if plan.content is None or not plan.groups:
        return False
    writer = GroupWriter(table, run, _FORCED, plan.target)
    rewritten = writer.write(plan.groups[0])
    writer.close()
    delete_row(lake, run, plan.groups[0].inputs[0].data_file.file_path, 1)
    lake.load().append(pa.table({"id": pa.array([6], pa.int64())}))
    number = plan.content.snapshot.sequence_number or 0
    change = Change(
        removed=plan.groups[0].inputs,
        added=tuple(NewFile(file=file, sequence_number=number) for file in rewritten.files),
    )
    try:
        Replacement(
            lake=lake, run=run, action=Name.REWRITE_DATA_FILES, plan=plan.content, reader=reader
        ).commit(change, {})
    except Abandoned:
        return True
    return False


def _keeps_deleted(lake: TableAccess, run: Run) -> bool:
    outcome = Compaction(lake, run, _FORCED).execute()
    table = lake.load()
    snapshot = table.metadata.current_snapshot()
    label = (
        snapshot is not None
        and snapshot.summary is not None
        and str(snapshot.summary.operation.value)
    )
    return (
        outcome.status is Ended.COMPLETED
        and label == "replace"
        and table.scan().to_arrow().num_rows == 6
    )


def delete_row(lake: TableAccess, run: Run, path: str, position: int) -> None:
    """As a merge-on-read engine does it, which the library cannot."""

    def build(draft: Draft, head: Content) -> tuple[Sequence[ManifestFile], Mapping[str, str]]:
        [entry] = [e for e in head.data if e.data_file.file_path == path]
        file = write_deletes(draft.table, run, entry.data_file, [position])
        number = draft.table.metadata.next_sequence_number()
        made = draft.manifest(file.spec_id, ManifestContent.DELETES, [draft.added(file, number)])
        return [made, *head.manifests], {}

    commit(lake, run, ManifestReader(lake.load().io), build)
