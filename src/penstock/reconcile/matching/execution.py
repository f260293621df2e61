"""One matching from files to evidence, in one call: what a match job runs, a preview, a test and a
benchmark."""

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
    """With a `run_id` open items are aged, against those that `before` has.

    `began` is given the engine, so that somebody else can cancel it; `watch` may raise to stop.
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
    began: Callable[[Engine], None] = lambda _engine: None
    told: Callable[[str], None] = lambda _stage: None

    def run(self) -> Executed:
        name = self.engine or self.recipe.engine or DEFAULT
        started = time.monotonic()
        (self.scratch / "engine").mkdir(parents=True)
        (self.scratch / "evidence").mkdir()
        with open_engine(name, self.scratch / "engine", self.limits) as engine:
            self.began(engine)
            matching, warnings = self._matching(engine)
            self.told("matching")
            matching.run()
            matched = time.monotonic()
            self.told("evidence")
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
        found = Matching(
            engine,
            self.recipe,
            left,
            right,
            decided=self.decided,
            limits=self.match_limits,
            watch=self.watch,
        )
        return found, warnings


def check_thresholds(recipe: Recipe, evidence: Evidence) -> None:
    """Raises when more is unmatched than the recipe allows; the evidence is there all the same.
    Open amounts are added without their signs: +1,000 and -1,000 are 2,000."""
    most, amount = recipe.thresholds.max_unmatched_pct, recipe.thresholds.max_unmatched_amount
    for side, totals in evidence.sides.items():
        if most is not None and totals.rows and totals.unmatched * 100 > most * totals.rows:
            share = totals.unmatched * 100 / totals.rows
            raise ThresholdPassed(
                f"{share:.2f} % of the {side} side is unmatched; {most} % is the most.", side=side
            )
        for currency, text in totals.amounts["unmatched_absolute"].items():
            if amount is not None and Decimal(text) > amount:
                raise ThresholdPassed(
                    f"{text} {currency} of the {side} side is unmatched; {amount} is the most.".replace(
                        "  ", " "
                    ),
                    side=side,
                )
