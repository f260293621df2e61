"""Notices that a client disconnected before its response, so that `engine.py` stops its query."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import Request


async def gone(request: Request) -> None:
    """Return when the client disconnects; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        continue
