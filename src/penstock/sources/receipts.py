"""Release rows at a source that spools them, once they are stored (see `SpoolSource`).

A consumer calls `await receipts.stored(rows)`, with the number of rows of the stream that are
durable by now, while the source is open. The driver then releases the segments that contain them.
A consumer that never calls it only wastes space in the source's spool, until the segments expire.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Receipts:
    """Pending releases of one stream; created by the consumer, filled by the driver."""

    def __init__(self) -> None:
        self._pending: deque[tuple[int, Callable[[], Awaitable[None]]]] = deque()

    def on_stored(self, rows: int, release: Callable[[], Awaitable[None]]) -> None:
        """Call `release` when the first `rows` rows are stored; register in row order."""
        self._pending.append((rows, release))

    def __len__(self) -> int:
        """The number of segments that are not released yet."""
        return len(self._pending)

    async def stored(self, rows: int) -> None:
        """Report that the first `rows` rows of the stream are durable."""
        due: list[Callable[[], Awaitable[None]]] = []
        while self._pending and self._pending[0][0] <= rows:
            due.append(self._pending.popleft()[1])
        await asyncio.gather(*(release() for release in due))
