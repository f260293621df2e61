from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.kit.errors import PenstockError
from penstock.sources import threaded_stream

if TYPE_CHECKING:
    from penstock.sources.postgres.session import Session

_ANSWER_SECONDS = 10.0


class SnapshotHold:
    """The transaction that exported the snapshot. While it is open, other sessions can use the
    snapshot, and vacuum is held back."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = asyncio.Lock()

    async def alive(self) -> bool:
        async with self._lock:
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
        async with self._lock:
            await threaded_stream.call(self._session.close, _no_cancel, name="postgres-hold")


def _no_cancel() -> None:
    """Closing a connection does not block."""
