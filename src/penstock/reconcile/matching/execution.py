"""Runs one matching, from files to evidence: used by match jobs, previews, tests and benchmarks."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.engines.contract import EngineLimits
from penstock.engines.registry import DEFAULT, open_engine
from penstock.reconcile.errors import ThresholdPassed
from penstock.reconcile.evidence.writer import gather
from penstock.reconcile.matching.column import columns
from penstock.reconcile.matching.decided import Decided
from penstock.reconcile.matching.matcher import SOURCES, Matching, MatchLimits
from penstock.reconcile.recipes import validation
from penstock.reconcile.recipes.model import SIDES
from penstock.reconcile.runs.aging import age
from penstock.reconcile.staging.statistics import narrowed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from penstock.engines.contract import Engine
    from penstock.reconcile.evidence.parquet_file import EvidenceFile
    from penstock.reconcile.evidence.writer import Evidence
    from penstock.reconcile.recipes.fault import Fault
    from penstock.reconcile.recipes.model import Recipe, SideName


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    evidence: Evidence
    aged: Sequence[EvidenceFile]
    engine: str
    warnings: Sequence[Fault]
    seconds: Mapping[str, float]


@dataclass(slots=True, kw_only=True)
class Execution:
    """With a `run_id`, open items are aged against those in `before`.

    `on_engine` receives the engine, so that another thread can cancel it; `watch` may raise to stop
    the run.
    """

    recipe: Recipe
    files: Mapping[SideName, Sequence[Path]]
    scratch: Path
    limits: EngineLimits = field(default_factory=EngineLimits)
    match_limits: MatchLimits = field(default_factory=MatchLimits)
    engine: str | None = None
    decided: Decided = field(default_factory=Decided)
    run_id: int | None = None
    before: Sequence[Path] = ()
    watch: Callable[[], None] = lambda: None
    on_engine: Callable[[Engine], None] = lambda _engine: None
    report_stage: Callable[[str], None] = lambda _stage: None

    def run(self) -> Executed:
        name = self.engine or self.recipe.engine or DEFAULT
        started = time.monotonic()
        (self.scratch / "engine").mkdir(parents=True)
        (self.scratch / "evidence").mkdir()
        with open_engine(name, self.scratch / "engine", self.limits) as engine:
            self.on_engine(engine)
            matching, warnings = self._matching(engine)
            self.report_stage("matching")
            matching.run()
            matched = time.monotonic()
            self.report_stage("evidence")
            evidence = gather(matching, self.scratch / "evidence", self.files)
            aged = (
                []
                if self.run_id is None
                else age(matching, self.scratch / "evidence", self.run_id, self.before)
            )
        ended = time.monotonic()
        seconds = {"match": round(matched - started, 3), "evidence": round(ended - matched, 3)}
        warnings = [*warnings, *matching.warnings]
        return Executed(
            evidence=evidence, aged=aged, engine=name, warnings=warnings, seconds=seconds
        )

    def _matching(self, engine: Engine) -> tuple[Matching, Sequence[Fault]]:
        left, right = (
            narrowed(columns(engine.relation(SOURCES[side], self.files[side])), self.files[side])
            for side in SIDES
        )
        warnings = validation.check(self.recipe, left, right)
        matching = Matching(
            engine,
            self.recipe,
            left,
            right,
            decided=self.decided,
            limits=self.match_limits,
            watch=self.watch,
        )
        return matching, warnings


def check_thresholds(recipe: Recipe, evidence: Evidence) -> None:
    """Raise if more is unmatched than the recipe allows; the evidence exists all the same.
    Unmatched amounts are added without their signs: +1,000 and -1,000 are 2,000."""
    most, amount = recipe.thresholds.max_unmatched_pct, recipe.thresholds.max_unmatched_amount
    for side, totals in evidence.sides.items():
        if most is not None and totals.rows and totals.unmatched * 100 > most * totals.rows:
            share = totals.unmatched * 100 / totals.rows
            raise ThresholdPassed(
                f"{share:.2f} % of the {side} side is unmatched; the limit is {most} %.", side=side
            )
        for currency, text in totals.amounts["unmatched_absolute"].items():
            if amount is not None and Decimal(text) > amount:
                raise ThresholdPassed(
                    (
                        f"{text} {currency} of the {side} side is unmatched; the limit is {amount}."
                    ).replace("  ", " "),
                    side=side,
                )
