"""Runs a recipe on empty tables, so that errors of the engine become faults before any run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.contract import EngineLimits
from penstock.engines.errors import EngineError
from penstock.kit.errors import InvalidInput
from penstock.kit.scratch import scratch_folder
from penstock.reconcile.matching.execution import Execution
from penstock.reconcile.recipes.fault import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.reconcile.recipes.model import Recipe, SideName

_LIMITS = EngineLimits(memory_bytes=256 * 1024**2, threads=1)
_MAX_MESSAGE = 500


def faults(recipe: Recipe, schemas: Mapping[SideName, pa.Schema]) -> list[Fault]:
    """With several rules, each is tried alone to find the failing one."""
    whole = _refused(recipe, schemas, "match_sql" if recipe.match_sql is not None else "rules")
    if whole is None:
        return []
    alone = [fault for fault in _rules(recipe, schemas) if fault is not None]
    return alone or [whole]


def _rules(recipe: Recipe, schemas: Mapping[SideName, pa.Schema]) -> Iterator[Fault | None]:
    for number, rule in enumerate(recipe.rules):
        yield _refused(recipe.model_copy(update={"rules": (rule,)}), schemas, f"rules.{number}")


def _refused(recipe: Recipe, schemas: Mapping[SideName, pa.Schema], path: str) -> Fault | None:
    with scratch_folder("trial") as folder:
        for side, schema in schemas.items():
            pq.write_table(schema.empty_table(), folder / f"{side}.parquet")
        files = {side: [folder / f"{side}.parquet"] for side in schemas}
        try:
            Execution(recipe=recipe, files=files, scratch=folder / "scratch", limits=_LIMITS).run()
        except (EngineError, InvalidInput) as e:
            return Fault(
                path=path,
                message=e.message[:_MAX_MESSAGE],
                suggestion=e.hint or _suggestion(path),
            )
    return None


def _suggestion(path: str) -> str:
    if path == "match_sql":
        return "docs/reference/match-sql.md lists what its SQL has."
    return "Leave the condition out that the engine does not understand; …/explain shows the SQL."
