"""Rules in their order on an engine: prepare both sides, link, and keep what is left for the next rule.

    matching = Matching(engine, recipe, left_columns, right_columns)
    matching.run()
    matching.links        the links, a rule each
    matching.rest         the pools of records that nobody matched

The relations `left_src` and `right_src` must be there. `watch` is called between steps and may raise to stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.reconcile import choosing, decided
from penstock.reconcile.carried import carry
from penstock.reconcile.clauses import Transpiler, quoted
from penstock.reconcile.decided import Decided
from penstock.reconcile.errors import BadValue, TooManyCandidates
from penstock.reconcile.free_sql import keys_sql, pairs_sql
from penstock.reconcile.recipe import SIDES
from penstock.reconcile.rules import STEPS, RulePlan, left_over, plan_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from penstock.engines.contract import Engine
    from penstock.reconcile.clauses import Prepared
    from penstock.reconcile.column import Column
    from penstock.reconcile.recipe import Recipe, SideName

SOURCES: Mapping[SideName, str] = {"left": "left_src", "right": "right_src"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchLimits:
    """Candidates may be `per_row` times the rows of both sides, and `least` in any case; `crossed` pairs are the most
    that a rule without a key may look at."""

    per_row: int = 20
    least: int = 1_000_000
    crossed: int = 400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """What one rule did; `rows` are its links, a table or a query, and `carries` says whether they carry what is asked
    of records."""

    name: str
    pattern: str
    rows: str
    links: int
    carries: bool = False


def _nobody() -> None:
    """Nobody watches."""


class Matching:
    def __init__(
        self,
        engine: Engine,
        recipe: Recipe,
        left: Mapping[str, Column],
        right: Mapping[str, Column],
        *,
        decided: Decided | None = None,
        limits: MatchLimits | None = None,
        watch: Callable[[], None] = _nobody,
    ) -> None:
        self.engine = engine
        self.recipe = recipe
        self.transpiler = Transpiler(engine.words, left, right)
        self.carried = carry(recipe, self.transpiler)
        self.plans = plan_rules(recipe, self.transpiler, self.carried)
        self.differences = [(pair.label, self.transpiler.difference(pair.left, pair.right)) for pair in recipe.compare]
        self.links: list[Linked] = []
        self.rest: dict[SideName, str] = {"left": "l", "right": "r"}
        self.rows: dict[SideName, int] = {}
        self._left: dict[SideName, int] = {}
        self._ready: dict[SideName, tuple[str, int]] = {}
        self._decided = decided or Decided()
        self._limits = limits or MatchLimits()
        self._watch = watch

    def run(self) -> None:
        self.prepare()
        self._decide()
        if self.recipe.match_sql is not None:
            self._free(self.recipe.match_sql)
        for plan in self.plans:
            self._watch()
            self._link(plan)

    def prepare(self) -> None:
        for side in SIDES:
            prepared = self.transpiler.side(side)
            self._check_values(side, prepared)
            key = getattr(self.recipe.sources, side).primary_key
            self.rows[side] = self.engine.table(prepared.alias, prepared.select(key, SOURCES[side]))
            self._left[side] = self.rows[side]

    def _decide(self) -> None:
        """What people decided goes before any rule."""
        if self._decided.unmatch:
            decided.forbid(self.engine, self.recipe, self._decided)
        if self._decided.match:
            count = decided.take(self.engine, self.recipe, self._decided)
            self.links.append(Linked(name="manual", pattern="manual", rows=decided.MANUAL, links=count))
            self._take_out(decided.MANUAL, "manual")

    def _check_values(self, side: SideName, prepared: Prepared) -> None:
        for check in prepared.checks.values():
            name = quoted(check.column)
            wrong = f"TRIM({name}) <> '' AND NOT {self.engine.words.matches(name, check.pattern)}"
            found = self.engine.rows(f"SELECT COUNT(*), MIN({name}) FROM {SOURCES[side]} WHERE {wrong}")
            if found[0][0]:
                raise BadValue(
                    f"Column {check.column} of the {side} side has {found[0][0]} values that are no {check.what},"
                    f" such as {str(found[0][1])[:80]!r}.",
                    hint="Clean them in the source's query, leave them out by a filter, or choose another column.",
                    side=side,
                    column=check.column,
                    count=found[0][0],
                )

    def _link(self, plan: RulePlan) -> None:
        rows = self._links_of(plan)
        for step in STEPS:
            self.engine.drop(plan.table(step))
        count = self.engine.rows(f"SELECT COUNT(*) FROM {rows} AS m")[0][0]
        pattern = plan.rule.pattern
        carries = pattern != "M:N"
        self.links.append(Linked(name=plan.rule.name, pattern=pattern, rows=rows, links=count, carries=carries))
        self._take_out(rows, str(plan.number))

    def _links_of(self, plan: RulePlan) -> str:
        match plan.rule.pattern:
            case "1:1":
                return self._one_to_one(plan)
            case "1:N" | "M:1":
                return self._sums(plan)
            case "M:N":
                return self._groups(plan)

    def _take_out(self, links: str, name: str) -> None:
        """A record leaves the pool once it is matched."""
        for side in SIDES:
            if side not in self._ready:
                self._make_pool(side, links, name)
        for side, (pool, rows) in self._ready.items():
            if self.rest[side] != side[0]:
                self.engine.drop(self.rest[side])
            self.rest[side], self._left[side] = pool, rows
        self._ready.clear()

    def _make_pool(self, side: SideName, links: str, name: str) -> int:
        """The pool as it will be; how many records are linked."""
        pool = f"rest_{side[0]}_{name}"
        rows = self.engine.table(pool, left_over(self.rest[side], links, side[0]))
        self._ready[side] = pool, rows
        return self._left[side] - rows

    def _one_to_one(self, plan: RulePlan) -> str:
        """Where nobody is contested the candidates are the links."""
        if self._each_once(plan, self._candidates(plan)):
            return f"({plan.uncontested()})"
        for side in ("l", "r"):
            self.engine.table(plan.table(f"b{side}"), plan.contested(side))
        self._choose(plan, choosing.pairs(self._stream(plan.disputes())))
        self.engine.table(plan.links, plan.settled())
        self.engine.drop(plan.table("cand"))
        return plan.links

    def _each_once(self, plan: RulePlan, candidates: int) -> bool:
        """Whether as many records leave each pool as there are candidates: then nobody is contested, and the pools
        that were made to count them stay."""
        once = all(self._make_pool(side, plan.table("cand"), str(plan.number)) == candidates for side in SIDES)
        if not once:
            for pool, _ in self._ready.values():
                self.engine.drop(pool)
            self._ready.clear()
        return once

    def _sums(self, plan: RulePlan) -> str:
        self._candidates(plan)
        self.engine.table(plan.table("b"), plan.contested(plan.many))
        self.engine.table(plan.table("rivals"), plan.rivals())
        self.engine.table(plan.table("whole"), plan.whole())
        if plan.sum is None:
            raise TypeError(f"rule {plan.rule.name} has no sum")
        rows = self._stream(plan.rivalry())
        self._choose(plan, choosing.sums(rows, plan.sum.within, left_is_one=plan.one == "l"))
        self.engine.table(plan.links, plan.summed())
        self.engine.drop(plan.table("cand"))
        return plan.links

    def _groups(self, plan: RulePlan) -> str:
        left, right = self.rest["left"], self.rest["right"]
        self.engine.table(plan.table("groups"), plan.groups(left, right))
        if not self._decided.unmatch:
            self.engine.table(plan.links, plan.zipped(left, right))
            return plan.links
        self.engine.table(plan.table("zipped"), plan.zipped(left, right))
        self.engine.table(plan.links, decided.allowed_groups(plan.table("zipped")))
        return plan.links

    def _choose(self, plan: RulePlan, links: Iterator[choosing.Link]) -> None:
        self.engine.load(plan.table("chosen"), choosing.table_of(links, watch=self._watch))

    def _candidates(self, plan: RulePlan) -> int:
        name = plan.rule.name
        if not plan.keyed and self.rows["left"] * self.rows["right"] > self._limits.crossed:
            raise TooManyCandidates(
                f"Rule {name!r} has no eq or normalized condition and would hold {self.rows['left']:,} records against"
                f" {self.rows['right']:,}.",
                hint="Add an eq or normalized condition to it.",
                rule=name,
            )
        found = plan.candidates(self.rest["left"], self.rest["right"])
        sql = f"{decided.allowed(found) if self._decided.unmatch else found} LIMIT {self.most + 1}"
        count = self.engine.table(plan.table("cand"), sql)
        self._check_count(count, f"Rule {name!r}", rule=name)
        return count

    @property
    def most(self) -> int:
        """How many candidate pairs a rule may have."""
        return max(self._limits.least, self._limits.per_row * (self.rows["left"] + self.rows["right"]))

    def _check_count(self, found: int, what: str, **details: str) -> None:
        if found > self.most:
            raise TooManyCandidates(
                f"{what} multiplies rows: it has more than {self.most:,} candidate pairs for {self.rows['left']:,} and"
                f" {self.rows['right']:,} records.",
                hint="Add a condition that tells records apart, such as a reference or a date window.",
                **details,
            )

    def _free(self, sql: str) -> None:
        """Pairs by free SQL; a record that is in several of them is in one group of the evidence, and ambiguous."""
        keys = keys_sql(sql, self.engine, self.recipe)
        self._check_count(self.engine.table("answer", f"{keys} LIMIT {self.most + 1}"), "match_sql")
        found = pairs_sql("answer", self.recipe, self.rest["left"], self.rest["right"])
        found = f"{decided.allowed(found) if self._decided.unmatch else found} LIMIT {self.most + 1}"
        self._check_count(self.engine.table("said", found), "match_sql")
        often = "SELECT {0} FROM said GROUP BY {0} HAVING COUNT(*) > 1"
        count = self.engine.table(
            "links_sql",
            "SELECT said.l AS g, said.l, said.r, CAST(10000 AS BIGINT) AS s,"
            " (bl.l IS NOT NULL OR br.r IS NOT NULL) AS ambiguous FROM said"
            f" LEFT JOIN ({often.format('l')}) AS bl ON bl.l = said.l"
            f" LEFT JOIN ({often.format('r')}) AS br ON br.r = said.r",
        )
        self.links.append(Linked(name="match_sql", pattern="sql", rows="links_sql", links=count))
        self._take_out("links_sql", "sql")

    def _stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        for batch in self.engine.stream(sql):
            self._watch()
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
