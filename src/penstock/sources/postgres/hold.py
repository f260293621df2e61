from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.kit.errors import PenstockError
from penstock.sources import threaded_stream

if TYPE_CHECKING:
    from penstock.sources.postgres.session import Session

_ANSWER_SECONDS = 10.0


class SnapshotHold:
    """The exporting transaction. While it is open its snapshot can be joined, and vacuum cannot
    pass it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asking = asyncio.Lock()

    async def alive(self) -> bool:
        async with self._asking:
            try:
                await threaded_stream.call(
                    lambda: self._session.rows("SELECT 1"),
                    self._session.cancel,
                    name="postgres-hold",
                    within=_ANSWER_SECONDS,
                )
            except PenstockError:
                return False
            return True

    async def close(self) -> None:
        async with self._asking:
            await threaded_stream.call(self._session.close, _nothing, name="postgres-hold")


def _nothing() -> None:
    """Closing a connection waits for nobody."""
