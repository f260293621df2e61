"""Count rows from Parquet footers: one ranged read of each file's tail, many files concurrently.

Rows sent and rows stored are counted by different code, so a lost batch or a truncated upload is
detected before a manifest publishes the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.storage.concurrency import each
from penstock.storage.errors import ObjectDamaged, RowsDiffer
from penstock.storage.keys import check_prefix
from penstock.storage.part import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.storage.contract import Store

_TAIL = 64 * 1024
_TRAILER = 8
_MAGIC = b"PAR1"
_MIN_SIZE = _TRAILER + len(_MAGIC)


async def verify_rows(store: Store, parts: Sequence[Part], *, sent: int) -> None:
    """Check the footers against each part's row count, and their sum against `sent`."""
    counted = await each(parts, lambda part: count_rows(store, part.path, part.size))
    for part, rows in zip(parts, counted, strict=True):
        if rows != part.rows:
            raise RowsDiffer(
                f"{part.path} holds {rows} rows, but {part.rows} were written.", path=part.path
            )
    if sum(counted) != sent:
        raise RowsDiffer(
            f"The files hold {sum(counted)} rows, but {sent} were sent.",
            stored=sum(counted),
            sent=sent,
        )


async def count_rows(store: Store, key: str, size: int) -> int:
    """The row count of one Parquet file of `size` bytes."""
    tail = await store.get_range(key, max(0, size - _TAIL), min(size, _TAIL))
    if size < _MIN_SIZE or not tail.endswith(_MAGIC):
        raise ObjectDamaged(f"{store.url}/{key} is not a whole Parquet file.", path=key)
    footer = int.from_bytes(tail[-_TRAILER:-4], "little") + _TRAILER
    if footer > size:
        raise ObjectDamaged(f"{store.url}/{key} has a footer larger than itself.", path=key)
    if footer > len(tail):
        tail = await store.get_range(key, size - footer, footer)
    return _rows_of(tail[-footer:], f"{store.url}/{key}")


async def parts_under(store: Store, prefix: str) -> tuple[Part, ...]:
    """The files that an engine wrote under an attempt's prefix, with their row counts; for engines
    that do not report them."""
    objects = [info async for info in store.list(check_prefix(prefix)) if info.size]
    rows = await each(objects, lambda info: count_rows(store, info.key, info.size))
    return tuple(
        Part(path=info.key, size=info.size, rows=count, etag=info.etag)
        for info, count in sorted(zip(objects, rows, strict=True), key=lambda pair: pair[0].key)
    )


def _rows_of(footer: bytes, place: str) -> int:
    try:
        # A stub with the real footer but without row groups, so only its metadata is readable.
        rows: int = pq.read_metadata(pa.BufferReader(_MAGIC + footer)).num_rows
    except (pa.ArrowInvalid, OSError):
        raise ObjectDamaged(f"{place} has an unreadable footer.") from None
    return rows
