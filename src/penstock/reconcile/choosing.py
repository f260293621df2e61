"""Who gets whom where records compete: in order, each record once.

The engine has sorted; what is left is sequential by nature and small by nature, for only contested candidates come
here. The choice depends on the order alone, so it is the same on every engine.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from penstock.reconcile.amounts import is_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from decimal import Decimal

    from penstock.reconcile.recipe import Within

LINKS = pa.schema(
    [("g", pa.int64()), ("l", pa.int64()), ("r", pa.int64()), ("s", pa.int64()), ("ambiguous", pa.bool_())]
)


class Link(NamedTuple):
    g: int
    l: int  # noqa: E741 - the left one, as everywhere in the SQL
    r: int
    s: int
    ambiguous: bool


def pairs(rows: Iterable[tuple[Any, ...]]) -> Iterator[Link]:
    """One to one, from `(l, r, score, *ranks)` with the best first.

    A pair is ambiguous when one of its two could have had another partner, still free, that was exactly as good.
    """
    lefts: set[int] = set()
    rights: set[int] = set()
    for _, equals in groupby(rows, key=lambda row: row[2:]):
        free = [row for row in equals if row[0] not in lefts and row[1] not in rights]
        of_left, of_right = _partners(free, 0, 1), _partners(free, 1, 0)
        for left, right, score, *_ranks in free:
            if left in lefts or right in rights:
                continue
            lefts.add(left)
            rights.add(right)
            others = any(r not in rights for r in of_left[left]) or any(x not in lefts for x in of_right[right])
            yield Link(left, left, right, score, others)


def _partners(rows: Iterable[tuple[Any, ...]], mine: int, its: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(row[mine], []).append(row[its])
    return found


def sums(rows: Iterable[tuple[Any, ...]], within: Within, *, left_is_one: bool) -> Iterator[Link]:
    """Each single record takes all of its parts that are still there, if they make up its amount.

    `rows` are `(one, many, score, a, b, wanted)` in the order in which the single records choose.
    """
    taken: set[int] = set()
    for one, wanted in groupby(rows, key=lambda row: row[0]):
        parts = [row for row in wanted if row[1] not in taken]
        if not parts or not _makes_up(parts, within, left_is_one=left_is_one):
            continue
        taken.update(row[1] for row in parts)
        ambiguous = any(row[5] for row in parts)
        for _, many, score, *_ in parts:
            left, right = (one, many) if left_is_one else (many, one)
            yield Link(one, left, right, score, ambiguous)


def _makes_up(parts: list[tuple[Any, ...]], within: Within, *, left_is_one: bool) -> bool:
    first = parts[0]
    a: Decimal = first[3] if left_is_one else sum(row[3] for row in parts)
    b: Decimal = sum(row[4] for row in parts) if left_is_one else first[4]
    return is_within(within, a, b)


def table_of(links: Iterable[Link], *, watch: Callable[[], None], size: int = 100_000) -> pa.Table:
    batches, rows = [], []
    for link in links:
        rows.append(link)
        if len(rows) >= size:
            watch()
            batches.append(_batch(rows))
            rows = []
    return pa.Table.from_batches([*batches, _batch(rows)], schema=LINKS)


def _batch(rows: list[Link]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(LINKS)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, LINKS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=LINKS)
