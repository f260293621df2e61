"""Arrow IPC files, written by one process and memory-mapped by others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path


def write(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def read(path: Path) -> pa.Table:
    """The table, memory-mapped and not copied."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
