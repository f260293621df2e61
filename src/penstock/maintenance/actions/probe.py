"""Start-up probe: verifies with the installed PyIceberg that a compaction keeps deletes.

It runs before the process compacts anything, on a scratch table of two files. A compaction is
planned; then a position delete and another commit are added. The planned replacement must be
refused, and a compaction planned afterwards must not bring the deleted row back.
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
from penstock.maintenance.actions.context import ActionContext
from penstock.maintenance.actions.group_writer import GroupWriter
from penstock.maintenance.actions.model import Action, Ended, Name
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from penstock.maintenance.tables.catalog.table_access import CatalogTableAccess
from penstock.maintenance.tables.commit.delete_file import write_deletes
from penstock.maintenance.tables.commit.replacement import (
    Abandoned,
    Change,
    NewFile,
    Replacement,
    commit,
)
from penstock.maintenance.tables.reading.content import ManifestReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import ManifestFile

    from penstock.maintenance.tables.catalog.table_access import TableAccess
    from penstock.maintenance.tables.commit.snapshot_draft import Draft
    from penstock.maintenance.tables.reading.content import Content

log = logging.get(__name__)
_FORCED = Action(name=Name.REWRITE_DATA_FILES, options={"rewrite_all": True})


@cache
def proven() -> bool:
    """Whether the probe passed; it runs once per process."""
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
            hint="The installed PyIceberg does not behave as required; compaction is disabled.",
        )
    return result


def _prove(catalog: Catalog) -> bool:
    catalog.create_namespace("probe")
    table = catalog.create_table("probe.rows", pa.schema([("id", pa.int64())]))
    for start in (0, 3):
        table.append(pa.table({"id": pa.array(range(start, start + 3), pa.int64())}))
    table_access, context = (
        CatalogTableAccess(catalog, ("probe", "rows")),
        ActionContext(job_id=0, attempt=uuid4().hex),
    )
    return _refuses_late(table_access, context) and _keeps_deleted(table_access, context)


def _refuses_late(table_access: TableAccess, context: ActionContext) -> bool:
    table, reader = table_access.load(), ManifestReader(table_access.load().io)
    plan = Compaction(table_access, context, _FORCED).plan()
    if plan.content is None or not plan.groups:
        return False
    writer = GroupWriter(table, context, _FORCED, plan.target)
    rewritten = writer.write(plan.groups[0])
    writer.close()
    delete_row(table_access, context, plan.groups[0].inputs[0].data_file.file_path, 1)
    table_access.load().append(pa.table({"id": pa.array([6], pa.int64())}))
    number = plan.content.snapshot.sequence_number or 0
    change = Change(
        removed=plan.groups[0].inputs,
        added=tuple(NewFile(file=file, sequence_number=number) for file in rewritten.files),
    )
    try:
        Replacement(
            table_access=table_access,
            context=context,
            action=Name.REWRITE_DATA_FILES,
            plan=plan.content,
            reader=reader,
        ).commit(change, {})
    except Abandoned:
        return True
    return False


def _keeps_deleted(table_access: TableAccess, context: ActionContext) -> bool:
    outcome = Compaction(table_access, context, _FORCED).execute()
    table = table_access.load()
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


def delete_row(table_access: TableAccess, context: ActionContext, path: str, position: int) -> None:
    """Delete a row as a merge-on-read engine does; PyIceberg cannot."""

    def build(draft: Draft, head: Content) -> tuple[Sequence[ManifestFile], Mapping[str, str]]:
        [entry] = [e for e in head.data if e.data_file.file_path == path]
        file = write_deletes(draft.table, context, entry.data_file, [position])
        number = draft.table.metadata.next_sequence_number()
        manifest = draft.manifest(
            file.spec_id, ManifestContent.DELETES, [draft.added(file, number)]
        )
        return [manifest, *head.manifests], {}

    commit(table_access, context, ManifestReader(table_access.load().io), build)
