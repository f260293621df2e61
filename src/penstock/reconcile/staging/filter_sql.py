"""Applies a side's filters to files; sources that run queries filter by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from penstock.engines.column_names import ROW, inner_name, leaving
from penstock.engines.contract import EngineLimits
from penstock.engines.errors import EngineQueryError
from penstock.engines.registry import DEFAULT, open_engine
from penstock.engines.spill import writing
from penstock.reconcile.errors import BadValue
from penstock.reconcile.staging.query import where_inside

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.reconcile.recipes.model import Side


def apply_filters(
    files: Sequence[Path], side: Side, folder: Path, limit: int | None = None
) -> Path:
    """The records that pass the filters, in order, as one file with the same columns."""
    folder.mkdir()
    target = folder / "kept.parquet"
    with open_engine(DEFAULT, folder, EngineLimits()) as engine:
        schema = engine.relation("given", files)
        names = ", ".join(inner_name(place) for place in range(len(schema)))
        most = "" if limit is None else f" LIMIT {limit}"
        let_through = where_inside(schema, side.filters)
        try:
            chosen = f"SELECT {names} FROM given WHERE {let_through}"
            reader = engine.stream(f"{chosen} ORDER BY {ROW}{most}")
            with writing(folder), pq.ParquetWriter(target, schema) as writer:
                for batch in leaving(reader, schema):
                    writer.write_batch(batch)
        except EngineQueryError as e:
            columns = ", ".join(sorted({condition.column for condition in side.filters}))
            raise BadValue(
                f"The filters on {columns} cannot be applied: {e.message}",
                hint="A text that is compared with a number must be one in every row.",
            ) from None
    return target
