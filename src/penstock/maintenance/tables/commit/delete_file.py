"""Writes position delete files, for `actions.delete_rewrite` and the probe. Commits nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.types import StringType

from penstock.maintenance.actions.group_writer import data_root
from penstock.maintenance.errors import ContentDiffers
from penstock.maintenance.tables.reading.content import PATH_FIELD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import ActionContext

SCHEMA = pa.schema(
    [
        pa.field(
            "file_path", pa.string(), nullable=False, metadata={b"PARQUET:field_id": b"2147483546"}
        ),
        pa.field("pos", pa.int64(), nullable=False, metadata={b"PARQUET:field_id": b"2147483545"}),
    ]
)


def write_deletes(
    table: Table, context: ActionContext, file: DataFile, positions: Sequence[int]
) -> DataFile:
    rows = pa.table(
        {"file_path": [file.file_path] * len(positions), "pos": sorted(positions)}, SCHEMA
    )
    return write_positions(table, context, file, rows)


def write_positions(
    table: Table, context: ActionContext, neighbor: DataFile, rows: pa.Table
) -> DataFile:
    """Write sorted rows as a delete file in the partition of `neighbor`, and verify it."""
    rows = rows.cast(SCHEMA)
    output = table.io.new_output(
        f"{data_root(table)}/{context.name}/deletes-{uuid4().hex[:12]}.parquet"
    )
    with output.create(overwrite=True) as sink:
        pq.write_table(rows, sink, compression="zstd")
    with table.io.new_input(output.location).open() as source:
        if not pq.read_table(source).equals(rows):
            raise ContentDiffers("The delete file differs from the rows that were written to it.")
    delete_file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=output.location,
        file_format=FileFormat.PARQUET,
        partition=neighbor.partition,
        record_count=rows.num_rows,
        file_size_in_bytes=len(output),
        lower_bounds={PATH_FIELD: to_bytes(StringType(), pc.min(rows["file_path"]).as_py())},
        upper_bounds={PATH_FIELD: to_bytes(StringType(), pc.max(rows["file_path"]).as_py())},
    )
    delete_file.spec_id = neighbor.spec_id
    return delete_file
