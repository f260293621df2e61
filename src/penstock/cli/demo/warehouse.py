"""The demo warehouse: a DuckDB file with a small bank and a company's invoices and payments."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "demo"
"""What the warehouse is called among the data sources."""


def build(file: Path) -> None:
    """Write the file whole or not at all; one that is there is left as it is."""
    import duckdb

    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with duckdb.connect(str(draft)) as connection:
        connection.execute((files("penstock.cli.demo.sql") / "warehouse.sql").read_text())
    draft.rename(file)
