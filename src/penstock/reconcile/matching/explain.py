"""The SQL that a recipe compiles to, for people who want to read it.

Called by `…/explain` of the API. It compiles for the recipe's engine and runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engines.column_names import with_names
from penstock.engines.contract import EngineLimits
from penstock.engines.registry import DEFAULT, open_engine
from penstock.kit.scratch import scratch_folder
from penstock.reconcile.match_sql.queries import compiled
from penstock.reconcile.matching.carried import carry
from penstock.reconcile.matching.clauses import Transpiler
from penstock.reconcile.matching.matcher import SOURCES
from penstock.reconcile.matching.rules import left_over, plan_rules
from penstock.reconcile.recipes.model import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.engines.contract import Dialect
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.matching.rules import RulePlan
    from penstock.reconcile.recipes.model import Recipe, SideName


def explain(
    recipe: Recipe, dialect: Dialect, left: Mapping[str, Column], right: Mapping[str, Column]
) -> list[dict[str, str]]:
    """The statements in order, each with its purpose."""
    transpiler = Transpiler(dialect, left, right, recipe.time_zone)
    plans = plan_rules(recipe, transpiler, carry(recipe, transpiler))
    named = [{"step": f"columns of {side}", "sql": _named(transpiler, side)} for side in SIDES]
    steps = [
        {"step": f"prepare {side}", "sql": _prepared(recipe, transpiler, side)} for side in SIDES
    ]
    if recipe.match_sql is not None:
        both: Mapping[SideName, Mapping[str, Column]] = {"left": left, "right": right}
        match_sql = compiled(recipe.match_sql, dialect, recipe.time_zone, both)
        match = {"step": "match", "sql": match_sql.sql}
        return [*steps, match, *named]
    pools = ("l", "r")
    for plan in plans:
        steps += [
            {"step": f"{plan.rule.name}: {what}", "sql": sql}
            for what, sql in _of_rule(plan, *pools)
        ]
        steps += [
            {
                "step": f"{plan.rule.name}: what is left of {side}",
                "sql": left_over(pool, plan.links, side),
            }
            for side, pool in zip(("l", "r"), pools, strict=True)
        ]
        pools = (f"rest_l_{plan.number}", f"rest_r_{plan.number}")
    return [*steps, *named]


def words_of(engine: str | None) -> Dialect:
    """The SQL dialect of the recipe's engine."""
    name = engine or DEFAULT
    with scratch_folder("explain") as folder:
        (folder / "scratch").mkdir()
        with open_engine(
            name, folder / "scratch", EngineLimits(memory_bytes=64 * 1024**2, threads=1)
        ) as opened:
            return opened.dialect


def _named(transpiler: Transpiler, side: SideName) -> str:
    """Maps internal column names, which are positions, to the column names of the file."""
    columns = transpiler.side(side).columns
    return with_names(SOURCES[side], {name: column.sql for name, column in columns.items()})


def _prepared(recipe: Recipe, transpiler: Transpiler, side: SideName) -> str:
    return transpiler.side(side).select(getattr(recipe.sources, side).primary_key, SOURCES[side])


def _of_rule(plan: RulePlan, left: str, right: str) -> Iterator[tuple[str, str]]:
    match plan.rule.pattern:
        case "1:1":
            yield "candidates", plan.candidates(left, right)
            yield "records that compete, settled cluster by cluster", plan.disputed()
            yield "links", plan.settled()
        case "1:N" | "M:1":
            yield "candidates", plan.candidates(left, right)
            yield "sums that fit", plan.whole()
            yield "contested, in the order of their keys", plan.rivalry()
            yield "links", plan.summed()
        case "M:N":
            yield "groups", plan.groups(left, right)
            yield "links", plan.zipped(left, right)
