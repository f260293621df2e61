"""What may be forgotten at the source once its rows are stored.

A consumer that keeps rows safely says so: `await receipts.stored(rows)`, with the number of rows of
the stream that are durable by now, while the source is open. The driver then lets go of the
segments that held them. A consumer that never says so loses nothing but space in the cluster's
spool, until the segments expire.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Receipts:
    """Made by the consumer of one stream, filled by the driver."""

    def __init__(self) -> None:
        self._owed: deque[tuple[int, Callable[[], Awaitable[None]]]] = deque()

    def owe(self, rows: int, release: Callable[[], Awaitable[None]]) -> None:
        """`release` is to be called when the first `rows` rows are stored; asked in the order of
        the rows."""
        self._owed.append((rows, release))

    def __len__(self) -> int:
        """How many segments are still held for us."""
        return len(self._owed)

    async def stored(self, rows: int) -> None:
        """The first `rows` rows of the stream are durable."""
        due: list[Callable[[], Awaitable[None]]] = []
        while self._owed and self._owed[0][0] <= rows:
            due.append(self._owed.popleft()[1])
        await asyncio.gather(*(release() for release in due))
