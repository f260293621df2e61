"""Writing a file of position deletes."""

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
from penstock.maintenance.tables.content import PATH_FIELD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.table import Table

    from penstock.maintenance.actions.context import Run

SCHEMA = pa.schema(
    [
        pa.field(
            "file_path", pa.string(), nullable=False, metadata={b"PARQUET:field_id": b"2147483546"}
        ),
        pa.field("pos", pa.int64(), nullable=False, metadata={b"PARQUET:field_id": b"2147483545"}),
    ]
)


def write_deletes(table: Table, run: Run, file: DataFile, positions: Sequence[int]) -> DataFile:
    rows = pa.table(
        {"file_path": [file.file_path] * len(positions), "pos": sorted(positions)}, SCHEMA
    )
    return write_positions(table, run, file, rows)


def write_positions(table: Table, run: Run, neighbor: DataFile, rows: pa.Table) -> DataFile:
    """One delete file of sorted rows in the partition of `neighbor`, read back before it counts."""
    rows = rows.cast(SCHEMA)
    output = table.io.new_output(
        f"{data_root(table)}/{run.name}/deletes-{uuid4().hex[:12]}.parquet"
    )
    with output.create(overwrite=True) as sink:
        pq.write_table(rows, sink, compression="zstd")
    with table.io.new_input(output.location).open() as source:
        if not pq.read_table(source).equals(rows):
            raise ContentDiffers("The delete file does not hold what was written into it.")
    made = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=output.location,
        file_format=FileFormat.PARQUET,
        partition=neighbor.partition,
        record_count=rows.num_rows,
        file_size_in_bytes=len(output),
        lower_bounds={PATH_FIELD: to_bytes(StringType(), pc.min(rows["file_path"]).as_py())},
        upper_bounds={PATH_FIELD: to_bytes(StringType(), pc.max(rows["file_path"]).as_py())},
    )
    made.spec_id = neighbor.spec_id
    return made
