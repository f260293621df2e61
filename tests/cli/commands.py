"""Commands as people run them, in this process: what they print, and what they exit with."""

from __future__ import annotations

import asyncio

from penstock.cli import output
from penstock.cli.tree import app


async def run(*arguments: str) -> int:
    """In a thread of its own, for a command brings its own event loop."""
    return await asyncio.to_thread(output.guarded, app, list(arguments))
