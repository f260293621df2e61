"""DuckDB's own PostgreSQL scanner, in an environment of its own: its extension does not load in the
DuckDB we have."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

HERE = Path(__file__).parent
UV = HERE.parents[1] / ".cache" / "bootstrap" / "bin" / "uv"
PACKAGES = ("--with", "duckdb==1.5.5", "--with", "duckdb-extension-postgres-scanner==1.5.5")


async def duckdb_scanner(tcp: str, scratch: Path) -> dict[str, Any] | None:
    """What reading the ledger cost it; None where its wheels cannot be had."""
    command = [str(UV), "run", "--quiet", "--no-project", "--python", sys.executable, *PACKAGES]
    command += [
        "python",
        str(HERE / "scanner.py"),
        tcp,
        "SELECT * FROM pg.public.ledger",
        str(scratch / "duckdb"),
    ]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    if process.returncode:
        Console(stderr=True).print(
            "DuckDB's PostgreSQL scanner cannot be had here and is left out."
        )
        return None
    scanned: dict[str, Any] = json.loads(output)
    return scanned
