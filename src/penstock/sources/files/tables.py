"""Tables of files: the files of a table, its schema, and reading parts of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa

from penstock.sources.errors import SourceError, SourceQueryError
from penstock.sources.files import parquet, separated
from penstock.sources.files.config import Config, column_types
from penstock.sources.files.failure import parsed
from penstock.sources.files.place import Entry, Place, matching

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from penstock.sources.contract import Limits

_FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".tsv": "csv", ".txt": "csv"}


class PieceDocument(TypedDict):
    """A piece in a chunk, which is JSON."""

    path: str
    size: int
    etag: str | None
    groups: list[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A file, or a range of its row groups."""

    entry: Entry
    groups: tuple[int, int] | None = None
    size: int = 0
    rows: int | None = None

    def as_json(self) -> PieceDocument:
        entry, groups = self.entry, self.groups and list(self.groups)
        return {"path": entry.path, "size": entry.size, "etag": entry.etag, "groups": groups}


def piece(document: PieceDocument) -> Piece:
    groups = document["groups"]
    return Piece(
        entry=Entry(path=document["path"], size=document["size"], etag=document["etag"]),
        groups=(groups[0], groups[1]) if groups else None,
    )


@dataclass(frozen=True, kw_only=True)
class FileTable:
    name: str
    format: str
    entries: Sequence[Entry]
    place: Place
    config: Config
    stop: threading.Event

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the first file; the other files are checked against it when read."""
        first = self.entries[0]
        with parsed(first.path), closing(self.place.open(first, self.stop)) as file:
            if self.format == "parquet":
                return parquet.schema(file)
            declared = column_types(self.config, self.name)
            return separated.schema(self._sample, self.config.csv, self._sign, declared, self.name)

    def pieces(self) -> Iterator[Piece]:
        """One piece per CSV file and per row group of a Parquet file."""
        for entry in self.entries:
            if self.format == "csv":
                yield Piece(entry=entry, size=entry.size)
                continue
            with parsed(entry.path), closing(self.place.open(entry, self.stop)) as file:
                sizes = parquet.group_sizes(file)
            for number, (size, rows) in enumerate(sizes):
                yield Piece(entry=entry, groups=(number, number + 1), size=size, rows=rows)

    def on_disk(self) -> Sequence[Path] | None:
        """The paths of Parquet files in a folder, all with one schema; otherwise None."""
        paths = (
            [self.place.path(entry) for entry in self.entries]
            if self.format == "parquet"
            else [None]
        )
        for entry in self.entries if None not in paths else ():
            with parsed(entry.path), closing(self.place.open(entry, self.stop)) as file:
                if parquet.schema(file) != self.schema:
                    raise self._other(entry)
        local = [path for path in paths if path is not None]
        return local if len(local) == len(self.entries) else None

    def batches(
        self, pieces: Sequence[Piece] | None, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        selected = pa.schema([self.schema.field(name) for name in columns])
        for part in [Piece(entry=entry) for entry in self.entries] if pieces is None else pieces:
            for batch in self._read(part, columns):
                if batch.schema != selected:
                    raise self._other(part.entry)
                yield batch
            self.place.check(part.entry)

    def _other(self, entry: Entry) -> SourceError:
        return SourceError(
            f"{entry.path} has different columns or types than the first file of {self.name}."
        )

    def _read(self, part: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        path = part.entry.path
        with parsed(path), closing(self.place.open(part.entry, self.stop)) as file:
            if self.format == "parquet":
                yield from parquet.batches(file, columns, part.groups and range(*part.groups))
            else:
                yield from separated.batches(
                    file, path, self.config.csv, self._sign, self.schema, columns
                )

    @cached_property
    def _sign(self) -> str:
        if (
            self.entries[0].path.removesuffix(".gz").endswith(".tsv")
            and not self.config.csv.delimiter
        ):
            return "\t"
        return separated.delimiter(self._sample, self.config.csv)

    @cached_property
    def _sample(self) -> str:
        first = self.entries[0]
        with parsed(first.path), closing(self.place.open(first, self.stop)) as file:
            return separated.sample(file, first.path, self.config.csv)


def spans(pieces: Sequence[Piece], limits: Limits | None) -> list[list[Piece]]:
    """Pieces in order, grouped to about the chunk size; one group without limits."""
    total = sum(part.size for part in pieces)
    size = max(limits.chunk_bytes, total / limits.max_chunks) if limits else total
    groups: list[list[Piece]] = [[]]
    filled = 0
    for part in pieces:
        if groups[-1] and filled + part.size / 2 > size * len(groups):
            groups.append([])
        groups[-1] = _joined(groups[-1], part)
        filled += part.size
    return groups


def _joined(span: list[Piece], part: Piece) -> list[Piece]:
    last = span[-1] if span else None
    if last is None or last.entry != part.entry or last.groups is None or part.groups is None:
        return [*span, part]
    rows = None if last.rows is None or part.rows is None else last.rows + part.rows
    grown = Piece(
        entry=last.entry,
        groups=(last.groups[0], part.groups[1]),
        size=last.size + part.size,
        rows=rows,
    )
    return [*span[:-1], grown]


def find_tables(place: Place, config: Config) -> dict[str, Sequence[Entry]]:
    """The files by table name, as declared, otherwise by the first segment of each path."""
    entries = [entry for entry in place.entries() if _format(entry.path)]
    if config.tables:
        return {name: matching(pattern, entries) for name, pattern in config.tables.items()}
    by_table: dict[str, list[Entry]] = {}
    for entry in entries:
        by_table.setdefault(entry.path.split("/")[0].split(".")[0], []).append(entry)
    return {name: by_table[name] for name in sorted(by_table)}


def table(
    name: str, entries: Sequence[Entry], place: Place, config: Config, stop: threading.Event
) -> FileTable:
    formats = {_format(entry.path) for entry in entries}
    if len(formats) != 1:
        what = "files of more than one format" if formats else "no file"
        raise SourceQueryError(f"Table {name} has {what}.")
    return FileTable(
        name=name,
        format=formats.pop() or "",
        entries=entries,
        place=place,
        config=config,
        stop=stop,
    )


def _format(path: str) -> str | None:
    name = path.rsplit("/", 1)[-1].removesuffix(".gz")
    return _FORMATS.get("." + name.rsplit(".", 1)[-1]) if "." in name else None
