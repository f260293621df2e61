"""Position deletes: which rows of which files are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFileContent, FileFormat

from penstock.maintenance.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile


def read_positions(io: FileIO, file: DataFile) -> pa.Table:
    """`file_path` and `pos` of one delete file."""
    if file.content != DataFileContent.POSITION_DELETES or file.file_format != FileFormat.PARQUET:
        raise Refused(f"{file.file_path} is not a Parquet file of position deletes.", hint="Use a remote engine.")
    with io.new_input(file.file_path).open() as source:
        table = pq.read_table(source, columns=["file_path", "pos"])
    return table.cast(pa.schema([("file_path", pa.string()), ("pos", pa.int64())]))


def touches(io: FileIO, file: DataFile, paths: Collection[str]) -> bool:
    found = pc.is_in(read_positions(io, file)["file_path"], value_set=pa.array(list(paths), pa.string()))
    return bool(pc.any(found).as_py())


def positions_by_path(io: FileIO, files: Iterable[DataFile], paths: Collection[str]) -> dict[str, pa.ChunkedArray]:
    """The deleted positions of each of the paths; a path without any is not there."""
    wanted = pa.array(list(paths), pa.string())
    tables = [read_positions(io, file) for file in files]
    if not tables:
        return {}
    table = pa.concat_tables(t.filter(pc.is_in(t["file_path"], value_set=wanted)) for t in tables)
    return {
        path: table.filter(pc.field("file_path") == path)["pos"] for path in pc.unique(table["file_path"]).to_pylist()
    }
