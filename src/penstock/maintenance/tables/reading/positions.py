"""Reads position delete files: which rows of which data files are deleted.

Rewrites apply and merge them; `commit.replacement` asks whether a new one is about its inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFileContent, FileFormat

from penstock.maintenance.errors import Refused, UnreadableFile
from penstock.maintenance.tables.reading.content import DeleteIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry

_POSITIONS = pa.schema([("file_path", pa.string()), ("pos", pa.int64())])


def read_positions(io: FileIO, file: DataFile) -> pa.Table:
    """`file_path` and `pos` of one delete file."""
    if file.content != DataFileContent.POSITION_DELETES or file.file_format != FileFormat.PARQUET:
        raise Refused(
            f"{file.file_path} is not a Parquet file of position deletes.",
            hint="Use a remote engine.",
        )
    with io.new_input(file.file_path).open() as source:
        try:
            rows = pq.read_table(source, columns=_POSITIONS.names).select(_POSITIONS.names)
            positions = rows.cast(_POSITIONS)
        except (pa.ArrowException, KeyError) as e:
            raise UnreadableFile(
                f"{file.file_path} is not a readable file of position deletes: "
                f"{type(e).__name__}: {str(e)[:200]}"
            ) from e
    if positions["pos"].null_count:
        raise UnreadableFile(f"{file.file_path} has deletes without a position.")
    return positions


def rows_of(rows: pa.Table, paths: Collection[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["file_path"], value_set=pa.array(list(paths), pa.string())))


def touches(io: FileIO, file: DataFile, paths: Collection[str]) -> bool:
    return bool(rows_of(read_positions(io, file), paths).num_rows)


def positions_by_path(
    io: FileIO, deletes: Sequence[ManifestEntry], inputs: Iterable[ManifestEntry]
) -> dict[str, pa.ChunkedArray]:
    """The deleted positions by data file path, for files that have any.

    Only rows of data files that the delete file applies to count: it may also have rows of a path
    that was added again later.
    """
    index = DeleteIndex(deletes)
    paths: dict[str, set[str]] = {}
    files: dict[str, DataFile] = {}
    for entry in inputs:
        for delete in index.applying_to(entry):
            file = delete.data_file
            files[file.file_path] = file
            paths.setdefault(file.file_path, set()).add(entry.data_file.file_path)
    tables = [rows_of(read_positions(io, file), paths[path]) for path, file in files.items()]
    if not tables:
        return {}
    table = pa.concat_tables(tables)
    return {
        path: table.filter(pc.field("file_path") == path)["pos"]
        for path in pc.unique(table["file_path"]).to_pylist()
    }
