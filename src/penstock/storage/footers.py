"""Read a Parquet file's schema from its footer with one ranged read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.storage.errors import ObjectDamaged

if TYPE_CHECKING:
    from penstock.storage.contract import Store
    from penstock.storage.part import Part

_TAIL = 64 * 1024
_TRAILER = 8
_MAGIC = b"PAR1"


async def read_schema(store: Store, part: Part) -> pa.Schema:
    tail = await store.get_range(part.path, max(0, part.size - _TAIL), min(part.size, _TAIL))
    length = int.from_bytes(tail[-_TRAILER:-4], "little") + _TRAILER
    if len(tail) < length <= part.size:
        tail = await store.get_range(part.path, part.size - length, length)
    try:
        return pq.read_schema(pa.BufferReader(_MAGIC + tail[-length:])).remove_metadata()
    except (pa.ArrowInvalid, OSError):
        raise ObjectDamaged(
            f"{store.url}/{part.path} has an unreadable footer.", path=part.path
        ) from None
