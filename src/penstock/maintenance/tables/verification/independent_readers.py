"""Cross-checks our data file reader against PyIceberg's scan and DuckDB's Parquet reader.

Our reader shares no code with either except Arrow. The first rows of input and output files are
compared bit by bit. A difference is an error. A file that neither of them can read is refused,
because nothing would verify our reading of it.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask

from penstock.kit import logging
from penstock.kit.scratch import scratch_folder
from penstock.maintenance.actions.model import MB
from penstock.maintenance.errors import ContentDiffers, Refused, UnreadableFile
from penstock.maintenance.tables.reading.file_schema import field_id
from penstock.maintenance.tables.reading.projection import as_written, project
from penstock.maintenance.tables.verification.checksum import stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from penstock.maintenance.tables.reading.data_file_reader import DataFileReader

    Rows: TypeAlias = dict[int, pa.Array]
    """Columns by their position in the table, in its types."""

log = logging.get(__name__)
COMPARED_BYTES = 4 * MB
SCANNED_BYTES = 16 * MB
"""PyIceberg reads whole files, so larger ones are checked with DuckDB only."""
ENGINE_MEMORY = "256MB"


class IndependentReaders:
    def __init__(self, table: Table, target: pa.Schema, reader: DataFileReader) -> None:
        self._table = table
        self._target = target
        self._reader = reader

    def check(
        self, file: DataFile, deletes: Sequence[DataFile], deleted: pa.ChunkedArray | None
    ) -> None:
        """Raise unless at least one other reader agrees with ours on the first rows of the file and
        none disagrees."""
        expected, count = self._reader.first(file, deleted, COMPARED_BYTES)
        readers: dict[str, Callable[[], Rows]] = {
            "PyIceberg": lambda: self._scanned(file, deletes, expected.num_rows),
            "DuckDB": lambda: self._queried(file, deletes, count),
        }
        compared = 0
        reasons = []
        for name, read in readers.items():
            try:
                rows = read()
            except ContentDiffers:
                raise
            except Exception as e:
                reasons.append(f"{name}: {type(e).__name__}: {str(e)[:200]}")
                continue
            self._compare(name, file, expected, rows)
            compared += bool(rows)
        if reasons:
            log.info("file_not_read_independently", file=file.file_path, reasons=reasons)
        if not compared and expected.num_rows:
            raise Refused(
                f"No other reader can read {file.file_path}, so a rewrite could not be verified. "
                f"{'; '.join(reasons)}"
            )

    def _compare(self, name: str, file: DataFile, expected: pa.Table, rows: Rows) -> None:
        for at, column in rows.items():
            field = self._target.field(at)
            if not stored(column).equals(stored(expected.column(at).combine_chunks())):
                raise ContentDiffers(
                    f"{name} and Penstock read different values in the column "
                    f"{field.name[:100]!r} of {file.file_path}.",
                    hint="Nothing was committed. Report the table, and keep its files.",
                )

    def _scanned(self, file: DataFile, deletes: Sequence[DataFile], count: int) -> Rows:
        if self._reader.unpacked_bytes(file) > SCANNED_BYTES:
            return {}
        table = self._table
        columns = [at for at, field in enumerate(self._target) if _scan_is_exact(field.type)]
        if self._reader.layout(file).int96:
            columns = [at for at in columns if not _holds_timestamp(self._target.field(at).type)]
        if not columns:
            return {}
        fields = table.schema().fields
        scan = ArrowScan(
            table.metadata, table.io, Schema(*(fields[at] for at in columns)), AlwaysTrue()
        )
        batches = list(scan.to_record_batches([FileScanTask(file, delete_files=set(deletes))]))
        if sum(batch.num_rows for batch in batches) < count:
            raise ContentDiffers(f"PyIceberg reads fewer rows of {file.file_path} than Penstock.")
        rows = {}
        for number, at in enumerate(columns):
            chunks = [batch.column(number) for batch in batches]
            type_ = chunks[0].type if chunks else self._target.field(at).type
            rows[at] = pa.chunked_array(chunks, type_).slice(0, count)
        return self._conformed(rows)

    def _conformed(self, rows: Mapping[int, pa.ChunkedArray]) -> Rows:
        """Convert to the table's types; columns that cannot be converted are left out."""
        result = {}
        for at, column in rows.items():
            field = self._target.field(at)
            with suppress(UnreadableFile):
                [result[at]] = project(
                    [column.combine_chunks()],
                    as_written([field]),
                    [field],
                    rows=len(column),
                    constants={},
                )
        return result

    def _queried(self, file: DataFile, deletes: Sequence[DataFile], count: int) -> Rows:
        layout = self._reader.layout(file)
        with _engine() as engine, self._local([file, *deletes]) as (path, *delete_paths):
            ids = _field_ids(engine, path)
            if not any(ids):
                ids = [column.field_id for column in layout.columns]
            places = {
                at: ids.index(id_)
                for at, field in enumerate(self._target)
                if (id_ := field_id(field)) in ids
                and _comparable(layout.schema.field(ids.index(id_)), field)
            }
            if not places:
                return {}
            names = [f"c{at}" for at in range(len(ids))]
            engine.execute("CREATE TABLE deleted (pos BIGINT)")
            if delete_paths:
                engine.execute(
                    "INSERT INTO deleted "
                    "SELECT pos FROM read_parquet($paths) WHERE file_path = $file",
                    {"paths": delete_paths, "file": file.file_path},
                )
            chosen = [
                _exported(names[place], self._target.field(at).type) for at, place in places.items()
            ]
            rows = engine.sql(
                f"SELECT {', '.join(chosen)} FROM (SELECT * FROM "
                "read_parquet($path, file_row_number = true) "
                f"AS rows({', '.join(names)}, position) LIMIT {count}) "
                "WHERE position NOT IN (SELECT pos FROM deleted) ORDER BY position",
                params={"path": path},
            ).to_arrow_table()
        columns = {at: rows.column(number) for number, at in enumerate(places)}
        return self._conformed(columns)

    @contextmanager
    def _local(self, files: Sequence[DataFile]) -> Iterator[list[str]]:
        """Paths that DuckDB can open; files of an object store are copied."""
        with scratch_folder("check") as folder:
            yield [self._path(file, folder / f"{at}.parquet") for at, file in enumerate(files)]

    def _path(self, file: DataFile, copy: Path) -> str:
        scheme, _, path = PyArrowFileIO.parse_location(file.file_path, self._table.io.properties)
        if scheme == "file" and Path(path).is_file():
            return path
        with self._table.io.new_input(file.file_path).open() as source, copy.open("wb") as sink:
            shutil.copyfileobj(source, sink, MB)
        return str(copy)


@contextmanager
def _engine() -> Iterator[duckdb.DuckDBPyConnection]:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": ENGINE_MEMORY,
        "arrow_lossless_conversion": True,
    }
    with duckdb.connect(config=settings) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        yield engine


def _field_ids(engine: duckdb.DuckDBPyConnection, path: str) -> list[int | None]:
    """The field ids of a file's columns, by DuckDB; the footer lists fields depth first."""
    fields = engine.execute(
        "SELECT field_id, coalesce(num_children, 0) FROM parquet_schema($path)", {"path": path}
    ).fetchall()
    ids = []
    inside = 0
    for id_, children in fields[1:]:
        if not inside:
            ids.append(id_)
        inside = max(0, inside - 1) + children
    return ids


def _exported(name: str, type_: pa.DataType) -> str:
    """DuckDB exports a UUID to Arrow as a string."""
    if isinstance(type_, pa.UuidType):
        return f"unhex(replace({name}::VARCHAR, '-', ''))"
    return name


def _comparable(source: pa.Field, target: pa.Field) -> bool:
    """Nested columns are compared only if their type is unchanged: DuckDB resolves nested fields by
    name."""
    if not pa.types.is_nested(target.type):
        return True
    return bool(source.type == target.type) and as_written([source]) == as_written([target])


def _scan_is_exact(type_: pa.DataType, *, repeated: bool = False) -> bool:
    """PyIceberg's scan reads a null list of structs, and a null map, as empty."""
    if pa.types.is_struct(type_):
        return not repeated and all(_scan_is_exact(field.type) for field in type_)
    if pa.types.is_list(type_):
        return _scan_is_exact(type_.value_type, repeated=True)
    return not pa.types.is_map(type_)


def _holds_timestamp(type_: pa.DataType) -> bool:
    if pa.types.is_nested(type_):
        return any(_holds_timestamp(type_.field(at).type) for at in range(type_.num_fields))
    return bool(pa.types.is_timestamp(type_))
