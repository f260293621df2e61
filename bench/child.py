"""A way that is measured, in a process of its own; what it prints is JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


async def child(module: str, *arguments: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{module} {arguments[0]} failed")
    result: dict[str, Any] = json.loads(output)
    return result
