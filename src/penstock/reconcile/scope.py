"""A side's filters, held against files; sources that answer queries filter by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from penstock.engines.contract import EngineLimits
from penstock.engines.registry import DEFAULT, open_engine
from penstock.reconcile.query import where

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.reconcile.recipe import Side


def kept(files: Sequence[Path], side: Side, folder: Path, limit: int | None = None) -> Path:
    """The records that the filters let through, in their order."""
    folder.mkdir()
    with open_engine(DEFAULT, folder, EngineLimits()) as engine:
        schema = engine.relation("given", files)
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in schema.names)
        most = "" if limit is None else f" LIMIT {limit}"
        let_through = where(schema, side.filters, "duckdb")
        reader = engine.stream(f"SELECT {names} FROM given WHERE {let_through} ORDER BY _id{most}")
        with pq.ParquetWriter(folder / "kept.parquet", reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    return folder / "kept.parquet"
