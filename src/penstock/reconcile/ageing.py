"""Open items across the runs of one recipe: since when each break is open, and which were cleared.

Not part of the evidence's digest, for it tells of runs and not of records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.reconcile import parts
from penstock.reconcile.recipe import SIDES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.reconcile.matching import Matching
    from penstock.reconcile.parts import EvidenceFile

OPEN, CLEARED = "open_items", "cleared_items"
_OPEN = pa.schema(
    [
        ("side", pa.string()),
        ("key", pa.string()),
        ("reason", pa.string()),
        ("since_run", pa.int64()),
        ("runs_open", pa.int64()),
    ]
)
_SEPARATOR = "\x1f"


def age(matching: Matching, folder: Path, run_id: int, before: Sequence[Path]) -> list[EvidenceFile]:
    """`before` are the open items of the run before; what is open again keeps its age, what is not was cleared."""
    was = pa.concat_tables([pq.read_table(file, schema=_OPEN) for file in before]) if before else _OPEN.empty_table()
    matching.engine.load("was_open", was)
    matching.engine.table("is_open", " UNION ALL ".join(_open(matching, side) for side in SIDES))
    opened = matching.engine.stream(
        f"SELECT i.side, i.key, i.reason, COALESCE(w.since_run, CAST({run_id} AS BIGINT)) AS since_run,"
        " COALESCE(w.runs_open, 0) + 1 AS runs_open FROM is_open AS i"
        " LEFT JOIN was_open AS w ON w.side = i.side AND w.key = i.key ORDER BY i.side, i.key"
    )
    files = parts.write(OPEN, _OPEN, (batch.cast(_OPEN) for batch in opened), folder)
    cleared = matching.engine.stream(
        "SELECT w.side, w.key, w.reason, w.since_run, w.runs_open FROM was_open AS w"
        " LEFT JOIN is_open AS i ON i.side = w.side AND i.key = w.key WHERE i.key IS NULL ORDER BY w.side, w.key"
    )
    return [*files, *parts.write(CLEARED, _OPEN, (batch.cast(_OPEN) for batch in cleared), folder)]


def _open(matching: Matching, side: str) -> str:
    me = side[0]
    key = getattr(matching.recipe.sources, side).primary_key
    columns = [f"COALESCE(CAST(x.p{number} AS VARCHAR), '')" for number in range(len(key))]
    text = f" || '{_SEPARATOR}' || ".join(columns)
    return (
        f"SELECT '{side}' AS side, {text} AS key, MIN(b.reason) AS reason FROM breaks_{me} AS b"
        f" JOIN {me} AS x ON x._id = b._id GROUP BY {text}"
    )
