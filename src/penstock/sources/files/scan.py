"""Run one query over files.

For a query in DuckDB each table is a stream that can be restarted, because a query may read a table
twice.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.kit.errors import PenstockError
from penstock.sources import batch_checks
from penstock.sources.errors import SourceQueryError
from penstock.sources.files.query import parse_query
from penstock.sources.files.tables import FileTable, Piece, find_tables, spans, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from penstock.sources.contract import Limits
    from penstock.sources.embedded.engine import Engine, Session
    from penstock.sources.files.config import Config
    from penstock.sources.files.place import Place


class Stream:
    """A table from which DuckDB can request new streams. `failure` keeps the original error, of
    which DuckDB passes on only the text."""

    def __init__(
        self, source: FileTable, pieces: Sequence[Piece] | None, named: frozenset[str] | None
    ) -> None:
        self._source = source
        self._pieces = pieces
        fields = [f for f in source.schema if named is None or f.name.casefold() in named]
        self._schema = pa.schema(fields or [source.schema.field(0)])
        batch_checks.distinct_in_any_case(self._schema.names, source.name)
        self.failure: PenstockError | None = None

    @property
    def name(self) -> str:
        return self._source.name

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self._schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._source.batches(self._pieces, self._schema.names)
        except PenstockError as e:
            self.failure = e
            raise


class Scan:
    """The execution of a query in one thread; `cancel` may be called from another. Without `pinned`
    pieces all files are read."""

    def __init__(
        self,
        sql: str,
        *,
        place: Place,
        config: Config,
        engine: Callable[[], Engine],
        pinned: Mapping[str, Sequence[Piece]] | None = None,
    ) -> None:
        self._reading = parse_query(sql)
        self._place = place
        self._config = config
        self._engine = engine
        self._pinned = pinned or {}
        self._stop = threading.Event()
        self._session: Session | None = None

    def cancel(self) -> None:
        self._stop.set()
        if self._session is not None:
            self._session.cancel()

    def schema(self) -> pa.Schema:
        tables = self._tables()
        if self._reading.plain is not None:
            return _renamed(tables[0], self._reading.plain)[1]
        return self._duckdb_session(self._streams(tables)).schema(self._reading.sql)

    def parts(self, limits: Limits) -> Sequence[Mapping[str, Sequence[Piece]]]:
        """Independently readable parts: spans of one table, otherwise one part with everything."""
        pieces_of = {one.name: list(one.pieces()) for one in self._tables()}
        if self._reading.row_by_row and len(pieces_of) == 1:
            [(name, pieces)] = pieces_of.items()
            return [{name: span} for span in spans(pieces, limits)]
        return [{name: spans(pieces, None)[0] for name, pieces in pieces_of.items()}]

    def on_disk(self) -> Sequence[Path] | None:
        """The local files of a query that selects one whole table; None for other queries."""
        tables = self._tables()
        return tables[0].on_disk() if self._reading.plain == () else None

    def batches(self) -> Iterator[pa.RecordBatch]:
        tables = self._tables()
        if self._reading.plain is not None:
            yield from self._copied(tables[0])
            return
        streams = self._streams(tables)
        try:
            yield from self._duckdb_session(streams).batches(self._reading.sql)
        except PenstockError as e:
            raise next((stream.failure for stream in streams if stream.failure), e) from None

    def _copied(self, only: FileTable) -> Iterator[pa.RecordBatch]:
        columns, schema = _renamed(only, self._reading.plain or ())
        for batch in only.batches(self._pinned.get(only.name), list(dict.fromkeys(columns))):
            yield pa.RecordBatch.from_arrays(
                [batch.column(name) for name in columns], schema=schema
            )

    def _streams(self, tables: Sequence[FileTable]) -> Sequence[Stream]:
        return [Stream(one, self._pinned.get(one.name), self._reading.named) for one in tables]

    def _duckdb_session(self, streams: Sequence[Stream]) -> Session:
        self._session = self._engine().session({stream.name: stream for stream in streams})
        return self._session

    def _tables(self) -> Sequence[FileTable]:
        entries = find_tables(self._place, self._config) if self._reading.tables else {}
        if missing := [name for name in self._reading.tables if name not in entries]:
            shown = ", ".join(list(entries)[:20])
            raise SourceQueryError(
                f"There is no table {missing[0]}.", hint=f"There are: {shown}." if shown else None
            )
        return [
            table(name, entries[name], self._place, self._config, self._stop)
            for name in self._reading.tables
        ]


def _renamed(only: FileTable, plain: Sequence[tuple[str, str]]) -> tuple[Sequence[str], pa.Schema]:
    """The columns to read, and the schema of the result."""
    pairs = plain or [(name, name) for name in only.schema.names]
    batch_checks.distinct([name for _, name in pairs])
    columns = [_column(only, own) for own, _ in pairs]
    leaving = [
        (name, only.schema.field(own).type) for own, (_, name) in zip(columns, pairs, strict=True)
    ]
    return columns, pa.schema(leaving)


def _column(only: FileTable, name: str) -> str:
    """The column with exactly this name, or else ignoring case as in SQL."""
    if name in only.schema.names:
        return name
    names: list[str] = [own for own in only.schema.names if own.casefold() == name.casefold()]
    if len(names) != 1:
        raise SourceQueryError(f"Table {only.name} has no column {name}.")
    return names[0]
