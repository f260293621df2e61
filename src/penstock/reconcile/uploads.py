"""Uploaded files: CSV, Parquet or Excel, kept as one Parquet file each, of exact types.

A CSV column is text, for nothing in the file says more; rules read numbers and dates out of text exactly or refuse.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.kit.errors import InvalidInput, NotFound, PenstockError
from penstock.kit.sqlfile import load
from penstock.reconcile.scope import kept
from penstock.reconcile.stored_file import StoredFile, batches
from penstock.sources.contract import Limits
from penstock.sources.registry import open_source
from penstock.storage.footers import read_schema
from penstock.storage.part import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from penstock.kit.db import Db
    from penstock.reconcile.recipe import Side
    from penstock.storage.contract import Store

SQL = load("penstock.reconcile.sql")
_FORMS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".gz": "csv",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".xls": "xlsx",
}
_CHUNK = 1024 * 1024
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    upload_id: str
    owner_username: str
    name: str
    key: str
    rows: int
    size_bytes: int
    sha256: str
    columns: Sequence[dict[str, str]]
    created_at: datetime

    def input(self) -> dict[str, Any]:
        file = {"key": self.key, "rows": self.rows, "size": self.size_bytes, "sha256": self.sha256}
        return {"upload": self.upload_id, "rows": self.rows, "files": [file]}


class Uploads:
    def __init__(self, db: Db, store: Callable[[], Store]) -> None:
        self._db = db
        self.store = store

    async def add(
        self, given: Path, *, name: str, owner: str, encoding: str = "utf-8", delimiter: str | None = None
    ) -> Upload:
        form = _form(name)
        upload_id = uuid4().hex
        with tempfile.TemporaryDirectory(prefix="penstock-upload-") as folder:
            path = await _as_parquet(given, form, name, Path(folder), encoding, delimiter)
            schema, rows = await asyncio.to_thread(_described, path)
            key = f"uploads/{upload_id}.parquet"
            digest, size = await asyncio.to_thread(_put, self.store(), key, path)
        columns = [{"name": field.name, "type": str(field.type)} for field in schema]
        await self._db.fetch(
            SQL.upload_add,
            upload_id=upload_id,
            owner_username=owner,
            name=name[:_MAX_NAME],
            key=key,
            rows=rows,
            size_bytes=size,
            sha256=digest,
            columns=orjson.dumps(columns).decode(),
        )
        return await self.get(upload_id)

    async def get(self, upload_id: str) -> Upload:
        row = await self._db.row(SQL.upload_get, upload_id=upload_id)
        if row is None:
            raise NotFound(f"There is no upload {upload_id[:40]}.")
        return Upload(**(dict(row) | {"columns": orjson.loads(row["columns"])}))

    async def schema(self, upload: Upload) -> pa.Schema:
        part = Part(path=upload.key, size=upload.size_bytes, rows=upload.rows)
        return await read_schema(self.store(), part)

    async def sample(self, upload: Upload, side: Side, rows: int) -> pa.Table:
        """The first rows; with filters the first that those let through, for which the file is copied once."""
        store = self.store()
        if not side.filters:
            file = StoredFile(store, upload.key, upload.size_bytes, asyncio.get_running_loop())
            return await asyncio.to_thread(_first, file, rows)
        with tempfile.TemporaryDirectory(prefix="penstock-sample-") as folder:
            path = Path(folder) / "rows.parquet"
            with path.open("wb") as target:
                async for data in store.stream(upload.key):
                    await asyncio.to_thread(target.write, data)
            found = await asyncio.to_thread(kept, [path], side, Path(folder) / "scope", rows)
            return await asyncio.to_thread(pq.read_table, found)


def _first(file: StoredFile, rows: int) -> pa.Table:
    schema, count = pq.read_schema(file), 0
    found: list[pa.RecordBatch] = []
    for batch in batches(file):
        found.append(batch.slice(0, rows - count))
        count += found[-1].num_rows
        if count >= rows:
            break
    return pa.Table.from_batches(found, schema)


def _form(name: str) -> str:
    form = _FORMS.get(Path(name.lower()).suffix)
    if form is None:
        raise InvalidInput(
            f"{name[:80]!r} is not a file that can be read.", hint="Upload .csv, .tsv, .csv.gz, .parquet or .xlsx."
        )
    return form


async def _as_parquet(given: Path, form: str, name: str, folder: Path, encoding: str, delimiter: str | None) -> Path:
    if not await asyncio.to_thread(lambda: given.stat().st_size):
        raise InvalidInput("The file is empty.")
    if form == "csv":
        gzipped = ".gz" if name.lower().endswith(".gz") else ""
        (folder / "in").mkdir()
        (folder / "in" / f"rows.csv{gzipped}").hardlink_to(given)
        return await _from_csv(folder, _encoding(given, encoding), delimiter)
    if form == "parquet":
        return given
    await asyncio.to_thread(_from_sheet, given, folder / "rows.parquet")
    return folder / "rows.parquet"


def _encoding(given: Path, asked: str) -> str:
    with given.open("rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else asked


async def _from_csv(folder: Path, encoding: str, delimiter: str | None) -> Path:
    csv = {"encoding": encoding} | ({"delimiter": delimiter} if delimiter else {})
    config: dict[str, object] = {"url": f"file://{folder / 'in'}", "csv": csv}
    path = folder / "rows.parquet"
    try:
        async with await asyncio.to_thread(open_source, "files", config, {}) as source:
            plan = await source.plan("SELECT * FROM rows", Limits(max_chunks=1))
            with pq.ParquetWriter(path, plan.schema, compression="zstd") as writer:
                async with aclosing(source.stream(plan.chunks[0])) as batches:
                    async for batch in batches:
                        writer.write_batch(batch)
    except PenstockError as e:
        hint = "Is it another encoding? ?encoding=cp1252 says so." if "UTF" in e.message.upper() else e.hint
        raise InvalidInput(f"The CSV cannot be read: {e.message}", hint=hint) from None
    return path


def _from_sheet(given: Path, path: Path) -> None:
    """The first sheet: a header, then rows; a column of one kind of value has its type, any other is text."""
    from python_calamine import CalamineWorkbook

    try:
        rows = CalamineWorkbook.from_path(str(given)).get_sheet_by_index(0).to_python()
    except Exception as e:
        raise InvalidInput(f"The workbook cannot be read ({type(e).__name__}).") from None
    if not rows or not all(str(cell).strip() for cell in rows[0]):
        raise InvalidInput("The first row of the sheet must name every column.")
    names = [str(cell).strip() for cell in rows[0]]
    if len(set(names)) != len(names):
        raise InvalidInput("The sheet names a column twice.")
    columns = [_column([row[place] for row in rows[1:]]) for place in range(len(names))]
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), path, compression="zstd")


def _column(cells: list[Any]) -> pa.Array:
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {float} and all(value is None or value.is_integer() for value in values):
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    if len(kinds) == 1:
        return pa.array(values)
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _described(path: Path) -> tuple[pa.Schema, int]:
    try:
        with pq.ParquetFile(path) as file:
            return file.schema_arrow, file.metadata.num_rows
    except pa.ArrowInvalid as e:
        raise InvalidInput(f"This is no Parquet file: {str(e)[:200]}") from None


def _put(store: Store, key: str, path: Path) -> tuple[str, int]:
    digest = hashlib.sha256()
    with path.open("rb") as source, store.writer(key) as writer:
        while data := source.read(_CHUNK):
            digest.update(data)
            writer.write(data)
    return digest.hexdigest(), path.stat().st_size
