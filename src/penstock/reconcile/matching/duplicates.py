"""Duplicate primary keys of each side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.engines.plain_types import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from penstock.reconcile.matching.matcher import Matching
    from penstock.reconcile.recipes.model import SideName

_BATCH = 10_000
SCHEMA = pa.schema([("side", pa.string()), ("key", pa.string()), ("count", pa.int64())])


def find(matching: Matching, side: SideName, read: Sequence[Path]) -> str | None:
    """The table of a side's duplicate keys, `(p0…, times)`; None where all keys are unique, the
    usual case.

    Keys in strictly ascending order in the files are unique, which is the cheapest check. Others
    are first counted by their hashes: if all hashes differ, all keys do.
    """
    key = getattr(matching.recipe.sources, side).primary_key
    if len(key) == 1 and _rises(read, key[0]):
        return None
    me, keys = side[0], matching.carried.side(side).keys
    marks = matching.engine.dialect.marks(keys)
    [(different,)] = matching.engine.rows(
        f"SELECT COUNT(*) FROM (SELECT DISTINCT {marks} FROM {me}) AS d"
    )
    if different == matching.rows[side]:
        return None
    named = ", ".join(keys)
    table = f"repeated_{me}"
    counted = f"SELECT {named}, COUNT(*) AS times FROM {me} GROUP BY {named} HAVING COUNT(*) > 1"
    return table if matching.engine.table(table, counted) else None


def _rises(files: Sequence[Path], key: str) -> bool:
    """Whether the keys are strictly ascending; stops at the first that is not."""
    kind = plain(pq.read_schema(files[0])).field(key).type
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
        return False
    last = pa.array([], kind)
    for values in _values(files, key, kind):
        keys = pa.concat_arrays([last, values])
        if values.null_count or not pc.all(pc.less(keys[:-1], keys[1:])).as_py():
            return False
        last = keys[-1:]
    return True


def _values(files: Sequence[Path], key: str, kind: pa.DataType) -> Iterator[pa.Array]:
    for file in files:
        with pq.ParquetFile(file, pre_buffer=False) as parquet:
            for batch in parquet.iter_batches(_BATCH, columns=[key], use_threads=False):
                yield batch.column(key).cast(kind)


def batches(
    matching: Matching,
    tables: Mapping[SideName, str | None],
) -> Iterator[pa.RecordBatch]:
    """In the order of keys as text, which is the same on every engine; there may be more than
    memory holds."""
    for side, table in tables.items():
        for batch in _sorted(matching, side, table) if table is not None else ():
            *keys, times = (column.to_pylist() for column in batch.columns)
            texts = [orjson.dumps(key).decode() for key in zip(*keys, strict=True)]
            yield pa.RecordBatch.from_arrays(
                [pa.repeat(side, len(texts)), pa.array(texts), pa.array(times)],
                schema=SCHEMA,
            )


def _sorted(matching: Matching, side: SideName, table: str) -> pa.RecordBatchReader:
    texts = [f"{text} AS t{n}" for n, text in enumerate(matching.key_texts(side, "d"))]
    order = ", ".join(f"t{number} NULLS LAST" for number in range(len(texts)))
    keys = f"SELECT {', '.join(texts)}, CAST(times AS BIGINT) AS times FROM {table} AS d"
    return matching.engine.stream(f"SELECT * FROM ({keys}) AS k ORDER BY {order}")
