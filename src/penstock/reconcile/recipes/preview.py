"""Runs a recipe on the first rows of both sides, without a run.

A record whose partner is not among the rows is a break here but not in a run: a preview shows what
the rules do.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.contract import EngineLimits
from penstock.engines.errors import EngineError, EngineQueryError
from penstock.kit.errors import InvalidInput
from penstock.kit.scratch import scratch_folder
from penstock.reconcile.evidence.writer import TABLES
from penstock.reconcile.matching.execution import Execution
from penstock.reconcile.recipes.preview_limits import first_that_fit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.engines.contract import Engine
    from penstock.reconcile.evidence.document import RuleEntry, TotalsEntry
    from penstock.reconcile.matching.decided import Decided
    from penstock.reconcile.matching.execution import Executed
    from penstock.reconcile.recipes.fault import Fault
    from penstock.reconcile.recipes.model import Recipe, SideName

SECONDS = 30.0
SHOWN_ROWS = 200
LIMITS = EngineLimits(memory_bytes=512 * 1024**2, threads=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """`tables` has the first rows of each evidence table."""

    totals: Mapping[SideName, TotalsEntry]
    rules: list[RuleEntry]
    tables: Mapping[str, pa.Table]
    warnings: list[Fault]


async def preview(
    recipe: Recipe, left: pa.Table, right: pa.Table, decided: Decided, *, seconds: float = SECONDS
) -> Preview:
    engines: list[Engine] = []
    work = asyncio.create_task(asyncio.to_thread(_executed, recipe, left, right, decided, engines))
    try:
        done, _ = await asyncio.wait({work}, timeout=seconds)
    except asyncio.CancelledError:
        _stop(engines)
        raise
    if not done:
        _stop(engines)
        await asyncio.wait({work})
    try:
        return work.result()
    except (EngineError, EngineQueryError):
        if done:
            raise
        raise InvalidInput(
            f"The preview took more than {seconds:g} s.", hint="Ask for fewer rows."
        ) from None


def _stop(engines: list[Engine]) -> None:
    for engine in engines:
        engine.cancel()


def _executed(
    recipe: Recipe, left: pa.Table, right: pa.Table, decided: Decided, engines: list[Engine]
) -> Preview:
    with scratch_folder("preview") as folder:
        for side, rows in (("left", left), ("right", right)):
            pq.write_table(rows, folder / f"{side}.parquet")
        done = Execution(
            recipe=recipe,
            files={"left": [folder / "left.parquet"], "right": [folder / "right.parquet"]},
            scratch=folder / "scratch",
            limits=LIMITS,
            decided=decided,
            on_engine=engines.append,
        ).run()
        return Preview(
            totals={side: totals.entry() for side, totals in done.evidence.sides.items()},
            rules=done.evidence.rules,
            tables={table: _first(done, table) for table in TABLES},
            warnings=list(done.warnings),
        )


def _first(done: Executed, table: str) -> pa.Table:
    file = next(file for file in done.evidence.files if file.table == table)
    with pq.ParquetFile(file.path) as parquet:
        batches = itertools.islice(parquet.iter_batches(SHOWN_ROWS), 1)
        return first_that_fit(pa.Table.from_batches(batches, parquet.schema_arrow))
