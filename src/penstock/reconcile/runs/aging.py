"""Ages open items across the runs of one recipe: since when each break is open, and what became of
those of the previous run.

An item that was open is now still open, matched, or gone: not among the records read this time,
which does not tell whether it was resolved. Aging is not part of the evidence digest, because it
depends on earlier runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.column_names import leaving
from penstock.reconcile.evidence import parquet_file
from penstock.reconcile.matching.keys import key_sql
from penstock.reconcile.recipes.model import SIDES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.reconcile.evidence.parquet_file import EvidenceFile
    from penstock.reconcile.matching.matcher import Matching
    from penstock.reconcile.recipes.model import SideName

OPEN, CLEARED = "open_items", "cleared_items"
_ITEM = pa.schema(
    [
        ("side", pa.string()),
        ("key", pa.string()),
        ("reason", pa.string()),
        ("since_run", pa.int64()),
        ("runs_open", pa.int64()),
    ]
)
_SHOWN = _ITEM.append(pa.field("outcome", pa.string()))
"""`outcome` of open items is `new` or `still_open`, of cleared ones `matched` or `gone`."""


def age(
    matching: Matching, folder: Path, run_id: int, before: Sequence[Path]
) -> list[EvidenceFile]:
    """`before` are the open items of the previous run; an item that is open again keeps its age."""
    tables = [pq.read_table(file, columns=_ITEM.names).cast(_ITEM) for file in before]
    matching.engine.load("was_open", pa.concat_tables([_ITEM.empty_table(), *tables]))
    matching.engine.table("is_open", " UNION ALL ".join(_open(matching, side) for side in SIDES))
    opened = matching.engine.stream(
        "SELECT i.side, i.key, i.reason, COALESCE(w.since_run,"
        f" CAST({run_id} AS BIGINT)) AS since_run,"
        " COALESCE(w.runs_open, 0) + 1 AS runs_open,"
        " CASE WHEN w.key IS NULL THEN 'new' ELSE 'still_open' END AS outcome FROM is_open AS i"
        " LEFT JOIN was_open AS w ON w.side = i.side AND w.key = i.key ORDER BY i.side, i.key"
    )
    files = parquet_file.write(OPEN, _SHOWN, leaving(opened, _SHOWN), folder)
    both = "was_open AS w LEFT JOIN is_open AS i ON i.side = w.side AND i.key = w.key"
    matching.engine.table("not_open", f"SELECT w.* FROM {both} WHERE i.key IS NULL")
    matching.engine.table("still_read", " UNION ALL ".join(_read(matching, side) for side in SIDES))
    cleared = matching.engine.stream(
        "SELECT n.side, n.key, n.reason, n.since_run, n.runs_open,"
        " CASE WHEN s.key IS NULL THEN 'gone' ELSE 'matched' END AS outcome FROM not_open AS n"
        " LEFT JOIN still_read AS s ON s.side = n.side AND s.key = n.key ORDER BY n.side, n.key"
    )
    return [*files, *parquet_file.write(CLEARED, _SHOWN, leaving(cleared, _SHOWN), folder)]


def _open(matching: Matching, side: SideName) -> str:
    me, text = side[0], _key(matching, side)
    return (
        f"SELECT '{side}' AS side, {text} AS key, MIN(b.reason) AS reason FROM breaks_{me} AS b"
        f" JOIN {me} AS x ON x._id = b._id GROUP BY {text}"
    )


def _read(matching: Matching, side: SideName) -> str:
    """Items that are no longer open and whose records were read."""
    read = f"JOIN {side[0]} AS x ON {_key(matching, side)} = n.key"
    return f"SELECT DISTINCT n.side, n.key FROM not_open AS n {read} WHERE n.side = '{side}'"


def _key(matching: Matching, side: SideName) -> str:
    """The key of a record `x` as text."""
    return key_sql(matching.key_texts(side, "x"))
