"""Whether whoever asked still waits for the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import Request


async def gone(request: Request) -> None:
    """Returns when the client has hung up; the body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        continue
