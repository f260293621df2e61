"""Tables to be maintained, and other writers beside us."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from penstock.maintenance.actions.context import ActionContext
from penstock.maintenance.actions.model import parse
from penstock.maintenance.engines import embedded
from penstock.maintenance.tables.catalog.table_access import CatalogTableAccess
from penstock.maintenance.tables.commit.delete_file import write_deletes
from penstock.maintenance.tables.commit.replacement import commit, updated_totals
from penstock.maintenance.tables.reading.content import ManifestReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from penstock.maintenance.actions.model import Outcome

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "day", StringType(), required=False),
    NestedField(3, "note", StringType(), required=False),
    NestedField(4, "at", TimestamptzType(), required=False),
)
BY_DAY = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day")
)
LATER = datetime.now(UTC) + timedelta(days=30)


def rows(start: int, count: int, *, day: str | None = None) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "day": pa.array([day or f"d{i % 3}" for i in ids], pa.string()),
            "note": pa.array([None if i % 7 == 0 else f"note {i}" for i in ids], pa.string()),
            "at": pa.array(
                [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=i) for i in ids],
                pa.timestamp("us", "UTC"),
            ),
        }
    )


@dataclass(frozen=True)
class SampleTable:
    """One table of a catalog."""

    catalog: Catalog
    name: tuple[str, str] = ("shop", "orders")

    @property
    def table_access(self) -> CatalogTableAccess:
        return CatalogTableAccess(self.catalog, self.name)

    @property
    def table(self) -> Table:
        return self.catalog.load_table(self.name)

    def create(
        self, *, files: int = 6, rows: int = 10, partitioned: bool = False, **properties: str
    ) -> SampleTable:
        self.catalog.create_namespace_if_not_exists(self.name[0])
        spec = {"partition_spec": BY_DAY} if partitioned else {}
        self.catalog.create_table(self.name, SCHEMA, properties=properties, **spec)
        for n in range(files):
            self.append(n * rows, rows)
        return self

    def append(self, start: int, count: int) -> None:
        self.table.append(rows(start, count))

    def append_as_now(self, start: int) -> None:
        """One row in whatever schema the table has by now."""
        table = self.table
        table.append(pa.Table.from_pylist([{"id": start}], schema=table.schema().as_arrow()))

    def ids(self, snapshot_id: int | None = None) -> list[int]:
        ids = (
            self.table.scan(selected_fields=("id",), snapshot_id=snapshot_id)
            .to_arrow()["id"]
            .to_pylist()
        )
        return sorted(ids)

    def all_rows(self) -> list[dict[str, object]]:
        return sorted(self.table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])

    def delete(self, ids: Iterable[int]) -> None:
        """As a merge-on-read engine does: position deletes, one delete file for each data file."""
        targets, run = set(ids), ActionContext(job_id=0, attempt=uuid4().hex)
        table = self.table

        def build(draft, head):
            manifests = []
            for entry in head.data:
                with table.io.new_input(entry.data_file.file_path).open() as source:
                    row_ids = pa.parquet.read_table(source, columns=["id"])["id"].to_pylist()
                if positions := [i for i, value in enumerate(row_ids) if value in targets]:
                    file = write_deletes(draft.table, run, entry.data_file, positions)
                    number = draft.table.metadata.next_sequence_number()
                    manifests.append(
                        draft.manifest(
                            file.spec_id, ManifestContent.DELETES, [draft.added(file, number)]
                        )
                    )
            totals = head.snapshot.summary.additional_properties
            return [*manifests, *head.manifests], updated_totals(
                totals, {"total-delete-files": len(manifests)}
            )

        commit(self.table_access, run, ManifestReader(table.io), build)

    def add_file(
        self,
        rows: pa.Table,
        *,
        partition: Record | None = None,
        spec_id: int = 0,
        statistics: dict | None = None,
        **how: object,
    ) -> str:
        """A data file as some other writer leaves it; `how` goes to Arrow's Parquet writer."""
        run, path = self.attempt(), f"{self.table.location()}/data/{uuid4().hex}.parquet"
        with self.table.io.new_output(path).create() as sink:
            pa.parquet.write_table(rows, sink, **how)

        def build(draft, head):
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=path,
                file_format=FileFormat.PARQUET,
                partition=partition or Record(),
                record_count=rows.num_rows,
                file_size_in_bytes=len(draft.table.io.new_input(path)),
                **(statistics or {}),
            )
            file.spec_id = spec_id
            number = draft.table.metadata.next_sequence_number()
            return [
                draft.manifest(spec_id, ManifestContent.DATA, [draft.added(file, number)]),
                *head.manifests,
            ], {}

        if self.table.current_snapshot() is None:
            self.table.append(self.table.schema().as_arrow().empty_table())
        commit(self.table_access, run, ManifestReader(self.table.io), build)
        return path

    def run(
        self, *actions: object, step: Callable[[str], None] = lambda _: None, **options: object
    ) -> Outcome:
        [action] = parse(actions)
        return embedded.execute(self.table_access, self.attempt(step=step, **options), action)

    def plan(self, *actions: object, **options: object) -> Outcome:
        [action] = parse(actions)
        return embedded.plan(self.table_access, self.attempt(**options), action)

    def attempt(self, *, job_id: int = 7, **options: object) -> ActionContext:
        return ActionContext(job_id=job_id, attempt=uuid4().hex, **{"fenced": True, **options})

    def operations(self) -> list[str]:
        return [s.summary.operation.value for s in self.table.metadata.snapshots]


COMPACT = {"name": "rewrite_data_files", "force": True}


def once(name: str, do: Callable[[], None]) -> Callable[[str], None]:
    """A step at which somebody else does something, the first time."""
    done = []

    def step(reached: str) -> None:
        if reached == name and not done:
            done.append(reached)
            do()

    return step
