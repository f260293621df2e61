"""Primary keys that are there more than once, per side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.reconcile.matching import Matching
    from penstock.reconcile.recipe import SideName

SCHEMA = pa.schema([("side", pa.string()), ("key", pa.string()), ("count", pa.int64())])


def find(matching: Matching, side: SideName) -> str | None:
    """The table of a side's repeated keys, `(p0…, times)`; None where every key is there once, as most often.

    Keys are counted by their marks first, which is cheaper: where all marks differ, all keys do.
    """
    me, keys = side[0], matching.keys(side)
    marks = matching.engine.words.marks(keys)
    [(different,)] = matching.engine.rows(f"SELECT COUNT(*) FROM (SELECT DISTINCT {marks} FROM {me}) AS d")
    if different == matching.rows[side]:
        return None
    named = ", ".join(keys)
    table = f"repeated_{me}"
    counted = f"SELECT {named}, COUNT(*) AS times FROM {me} GROUP BY {named} HAVING COUNT(*) > 1"
    return table if matching.engine.table(table, counted) else None


def rows(matching: Matching, tables: Mapping[SideName, str | None]) -> pa.RecordBatch:
    found: list[dict[str, object]] = []
    for side, table in tables.items():
        for *key, times in matching.engine.rows(f"SELECT * FROM {table}") if table is not None else ():
            text = orjson.dumps([None if value is None else str(value) for value in key]).decode()
            found.append({"side": side, "key": text, "count": times})
    found.sort(key=lambda row: (str(row["side"]), str(row["key"])))
    return pa.RecordBatch.from_pylist(found, schema=SCHEMA)
