"""Runs the rules of a recipe in order on an engine: prepare both sides, link records, and leave the
rest to the next rule.

    matching = Matching(engine, recipe, left_columns, right_columns)
    matching.run()
    matching.links        the links of each rule
    matching.rest         the pools of unmatched records

The relations `left_rows` and `right_rows` must exist. `watch` is called between steps and may raise
to stop.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.engines.errors import EngineQueryError
from penstock.reconcile.errors import BadValue, RuleFailed, TooManyCandidates
from penstock.reconcile.matching import decided
from penstock.reconcile.matching.carried import carry
from penstock.reconcile.matching.clauses import Transpiler, written_text
from penstock.reconcile.matching.clusters import Greedy, Settling
from penstock.reconcile.matching.decided import Decided, Keys
from penstock.reconcile.matching.free_sql import FreeSql
from penstock.reconcile.matching.link_files import LINKS, PieceChooser, RowFile, missed_schema
from penstock.reconcile.matching.rules import STEPS, RulePlan, left_over, plan_rules
from penstock.reconcile.recipes.fault import Fault
from penstock.reconcile.recipes.model import SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from penstock.engines.contract import Engine
    from penstock.reconcile.matching.clauses import Check
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.matching.link_files import Rival
    from penstock.reconcile.recipes.model import Recipe, SideName

SOURCES: Mapping[SideName, str] = {"left": "left_rows", "right": "right_rows"}
PER_ROW_SETTING = "PENSTOCK_RECONCILE_CANDIDATES_PER_ROW"
PER_ROW_FIELD = "limits.candidates_per_row"
_SHOWN = 80
_TELL_APART = "Add a condition that tells records apart, such as a reference or a date window"
_LARGE_SUMS = "Leave out by a filter what makes sums of more than 38 digits (28 with a percentage)."
_FREE_VALUES = "Leave out in the SQL what it cannot read; …/explain shows it as it runs."


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchLimits:
    """Candidates may be `per_row` times the rows of both sides, and `least` in any case; `crossed`
    is the most pairs that a rule without a key may compare. A cluster of competing records is
    solved exactly up to `exact_cluster` records; `at_once` is the most competing candidates read
    into memory.

    For the reasons of breaks pairs of equal keys are examined, `examined_at_once` of them or as
    many as there are rows, and `examined` in all for each rule and side; breaks beyond that are
    `not_examined`.
    """

    per_row: int = 20
    least: int = 1_000_000
    crossed: int = 400_000_000
    exact_cluster: int = 300
    at_once: int = 100_000
    examined_at_once: int = 1_000_000
    examined: int = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """The result of one rule; `rows` are its links, a table or a query, and `carries` says whether
    they have the carried columns of records. `lead` is the side whose record identifies a match.
    `number` is the rule's in a match_id: its position in the recipe from 1, and 0 for manual
    decisions."""

    name: str
    pattern: str
    number: int
    rows: str
    links: int
    carries: bool = False
    lead: SideName = "left"
    greedy: Greedy = field(default_factory=Greedy)


def _never_stop() -> None:
    """The default `watch`."""


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
        watch: Callable[[], None] = _never_stop,
    ) -> None:
        self.engine = engine
        self.recipe = recipe
        self.transpiler = Transpiler(engine.dialect, left, right, recipe.time_zone)
        self.carried = carry(recipe, self.transpiler)
        self.plans = plan_rules(recipe, self.transpiler, self.carried)
        self.differences = [
            (pair.label, self.transpiler.difference(pair.left, pair.right))
            for pair in recipe.compare
        ]
        self.free = None if recipe.match_sql is None else FreeSql(engine, recipe, left, right)
        self.links: list[Linked] = []
        self.rest: dict[SideName, str] = {"left": "l", "right": "r"}
        self.rows: dict[SideName, int] = {}
        self.not_examined: dict[SideName, int] = {}
        self._left: dict[SideName, int] = {}
        self._ready: dict[SideName, tuple[str, int]] = {}
        self._decided = decided or Decided()
        self._limits = limits or MatchLimits()
        self._watch = watch

    def run(self) -> None:
        self.prepare()
        self._decide()
        if self.free is not None:
            self._free(self.free)
        for plan in self.plans:
            self._watch()
            self._link(plan)

    def check_stopped(self) -> None:
        """Raises if the caller wants the run to stop."""
        self._watch()

    @property
    def warnings(self) -> list[Fault]:
        """Warnings for readers of the evidence: clusters solved greedily, breaks not examined."""
        greedy = {linked.name: linked.greedy for linked in self.links if linked.greedy.clusters}
        numbers = {plan.rule.name: plan.number for plan in self.plans}
        return [
            *(self._greedy_warning(numbers[name], settled) for name, settled in greedy.items()),
            *(self._examined_warning(side, count) for side, count in self.not_examined.items()),
        ]

    def _examined_warning(self, side: SideName, count: int) -> Fault:
        return Fault(
            path=f"sources.{side}",
            message=f"{count:,} unmatched records have no reason (not_examined): so many records of"
            f" the other side have their keys that more than {self.examined:,} pairs would have to"
            " be examined.",
            suggestion=f"{_TELL_APART}.",
            severity="warning",
        )

    def _greedy_warning(self, number: int, greedy: Greedy) -> Fault:
        return Fault(
            path=f"rules.{number}",
            message=f"{greedy.clusters:,} clusters with {greedy.records:,} competing records were"
            f" settled greedily: they have more than {self._limits.exact_cluster} records each.",
            suggestion=f"{_TELL_APART}.",
            severity="warning",
        )

    def prepare(self) -> None:
        for side in SIDES:
            prepared = self.transpiler.side(side)
            for check in prepared.checks.values():
                self._check_values(side, check)
            key = getattr(self.recipe.sources, side).primary_key
            self.rows[side] = self.engine.table(prepared.alias, prepared.select(key, SOURCES[side]))
            self._left[side] = self.rows[side]

    def _decide(self) -> None:
        """Apply manual decisions before any rule."""
        if self._decided.unmatch:
            decided.forbid(self.engine, self._keys, self._decided)
        if self._decided.match:
            count = decided.take(self.engine, self._keys, self._decided)
            manual = Linked(
                name=decided.MANUAL_RULE,
                pattern="manual",
                number=0,
                rows=decided.MANUAL,
                links=count,
            )
            self.links.append(manual)
            self._take_out(decided.MANUAL, "manual")

    def key_columns(self, side: SideName) -> list[Column]:
        """The primary key columns of a side."""
        columns = self.transpiler.side(side).columns
        return [columns[name] for name in getattr(self.recipe.sources, side).primary_key]

    def key_texts(self, side: SideName, alias: str) -> list[str]:
        """The primary key of a prepared record as text, the same on every engine."""
        dialect = self.engine.dialect
        keys = enumerate(self.key_columns(side))
        return [written_text(column, f"{alias}.p{number}", dialect) for number, column in keys]

    @property
    def _keys(self) -> Keys:
        left, right = ([column.type for column in self.key_columns(side)] for side in SIDES)
        left_texts, right_texts = (self.key_texts(side, side[0]) for side in SIDES)
        return Keys(left=left, right=right, left_texts=left_texts, right_texts=right_texts)

    def _check_values(self, side: SideName, check: Check) -> None:
        """Refuse values that a rule cannot use; the error names the first of them and its
        record."""
        source, keys = SOURCES[side], self.key_columns(side)
        # Not in a WHERE, which is pushed into the scan: statistics of Parquet files leave out NaN.
        wrong = f"CASE WHEN {check.wrong} THEN _id END"
        [(count, first)] = self.engine.rows(f"SELECT COUNT({wrong}), MIN({wrong}) FROM {source}")
        if not count:
            return
        texts = (written_text(column, column.sql, self.engine.dialect) for column in keys)
        expressions = ", ".join([check.column.sql, *texts])
        [values] = self.engine.rows(f"SELECT {expressions} FROM {source} WHERE _id = {first}")
        value, *key = [None if part is None else str(part)[:_SHOWN] for part in values]
        named = [f"{column.name} {part!r}" for column, part in zip(keys, key, strict=True)]
        raise BadValue(
            f"Column {check.column.name} of the {side} side has {count} values that are no"
            f" {check.what}; the first is {value!r}, in the record with {', '.join(named)}.",
            hint=check.hint,
            side=side,
            column=check.column.name,
            count=count,
            value=value,
            key=key,
        )

    def _link(self, plan: RulePlan) -> None:
        name = plan.rule.name
        with self._explained(f"Rule {name!r}", _LARGE_SUMS, rule=name):
            rows, greedy = self._links_of(plan)
            for step in STEPS:
                self.engine.drop(plan.table(step))
            count = self.engine.rows(f"SELECT COUNT(*) FROM {rows} AS m")[0][0]
        pattern = plan.rule.pattern
        linked = Linked(
            name=name,
            pattern=pattern,
            number=plan.number + 1,
            rows=rows,
            links=count,
            carries=pattern != "M:N",
            lead="right" if pattern == "M:1" else "left",
            greedy=greedy,
        )
        self.links.append(linked)
        self._take_out(rows, str(plan.number))

    @contextmanager
    def _explained(self, what: str, hint: str, **details: str) -> Iterator[None]:
        try:
            yield
        except EngineQueryError as e:
            message = f"{what} cannot be computed: {e.message}"
            raise RuleFailed(message, hint=hint, **details) from None

    def _links_of(self, plan: RulePlan) -> tuple[str, Greedy]:
        match plan.rule.pattern:
            case "1:1":
                return self._one_to_one(plan)
            case "1:N" | "M:1":
                return self._sums(plan), Greedy()
            case "M:N":
                return self._groups(plan), Greedy()

    def _take_out(self, links: str, name: str) -> None:
        """Remove matched records from the pools."""
        for side in SIDES:
            if side not in self._ready:
                self._make_pool(side, links, name)
        for side, (pool, rows) in self._ready.items():
            if self.rest[side] != side[0]:
                self.engine.drop(self.rest[side])
            self.rest[side], self._left[side] = pool, rows
        self._ready.clear()

    def _make_pool(self, side: SideName, links: str, name: str) -> int:
        """Create the next pool; returns the number of linked records."""
        pool = f"rest_{side[0]}_{name}"
        rows = self.engine.table(pool, left_over(self.rest[side], links, side[0]))
        self._ready[side] = pool, rows
        return self._left[side] - rows

    def _one_to_one(self, plan: RulePlan) -> tuple[str, Greedy]:
        """If no record is contested, the candidates are the links."""
        if self._each_once(plan, self._candidates(plan)):
            return f"({plan.uncontested()})", Greedy()
        for side in ("l", "r"):
            self.engine.table(plan.table(f"b{side}"), plan.contested(side))
        greedy = Settling(
            engine=self.engine,
            plan=plan,
            exact=self._limits.exact_cluster,
            at_once=self._limits.at_once,
            watch=self._watch,
        ).run()
        self.engine.table(plan.links, plan.settled())
        self.engine.drop(plan.table("cand"))
        return plan.links, greedy

    def _each_once(self, plan: RulePlan, candidates: int) -> bool:
        """Whether each pool loses as many records as there are candidates: then no record is
        contested, and the pools made for counting are kept."""
        once = all(
            self._make_pool(side, plan.table("cand"), str(plan.number)) == candidates
            for side in SIDES
        )
        if not once:
            for pool, _ in self._ready.values():
                self.engine.drop(pool)
            self._ready.clear()
        return once

    def _sums(self, plan: RulePlan) -> str:
        self._candidates(plan)
        contested = self.engine.table(plan.table("b"), plan.shared_parts())
        self.engine.table(plan.table("rivals"), plan.rivals())
        self.engine.table(plan.table("whole"), plan.whole())
        if plan.sum is None:
            raise TypeError(f"rule {plan.rule.name} has no sum")
        scale = plan.sum.size.scale
        left_is_one = plan.one == "l"
        chosen = RowFile(self.engine, plan.table("chosen"), LINKS)
        missed = RowFile(self.engine, plan.table("missed"), missed_schema(scale))
        with chosen, missed:
            chooser = PieceChooser(
                plan.sum.within,
                scale,
                missed.add,
                left_is_one=left_is_one,
                contested=contested,
            )
            for link in chooser.links(self._stream(plan.rivalry())):
                chosen.add(link)
        self.engine.table(plan.miss, plan.missed(plan.table("missed")))
        self.engine.table(plan.links, plan.summed())
        self.engine.drop(plan.table("cand"))
        return plan.links

    def _groups(self, plan: RulePlan) -> str:
        left, right = self.rest["left"], self.rest["right"]
        self.engine.table(plan.table("groups"), plan.groups(left, right))
        self.engine.table(plan.miss, plan.missed_groups(left, right))
        if not self._decided.unmatch:
            self.engine.table(plan.links, plan.zipped(left, right))
            return plan.links
        self.engine.table(plan.table("zipped"), plan.zipped(left, right))
        self.engine.table(plan.links, decided.allowed_groups(plan.table("zipped")))
        return plan.links

    def _candidates(self, plan: RulePlan) -> int:
        name = plan.rule.name
        if not plan.keyed and self.rows["left"] * self.rows["right"] > self._limits.crossed:
            raise TooManyCandidates(
                f"Rule {name!r} has no eq or normalized condition and would compare "
                f"{self.rows['left']:,} records with"
                f" {self.rows['right']:,}.",
                hint="Add an eq or normalized condition to it.",
                rule=name,
            )
        candidates = plan.candidates(self.rest["left"], self.rest["right"])
        allowed = decided.allowed(candidates) if self._decided.unmatch else candidates
        sql = f"{allowed} LIMIT {self.most + 1}"
        count = self.engine.table(plan.table("cand"), sql)
        self._check_count(count, f"Rule {name!r}", rule=name)
        return count

    @property
    def examined(self) -> int:
        """The number of pairs examined for the reasons of one side by one rule."""
        return self._limits.examined

    @property
    def examined_at_once(self) -> int:
        return max(self._limits.examined_at_once, self.rows["left"] + self.rows["right"])

    @property
    def most(self) -> int:
        """The maximum number of candidate pairs of a rule."""
        return max(self._limits.least, self.per_row * (self.rows["left"] + self.rows["right"]))

    @property
    def per_row(self) -> int:
        """From the recipe, or from the setting if the recipe has none."""
        return self.recipe.limits.candidates_per_row or self._limits.per_row

    def _check_count(self, count: int, what: str, **details: str) -> None:
        if count > self.most:
            raise TooManyCandidates(
                f"{what} multiplies rows: it has more than {self.most:,} candidate pairs for"
                f" {self.rows['left']:,} and {self.rows['right']:,} records; allowed are"
                f" {self.per_row} for each record, and {self._limits.least:,} in any case.",
                hint=f"{_TELL_APART}; or raise {PER_ROW_FIELD} of the recipe,"
                f" or {PER_ROW_SETTING} for recipes that do not say.",
                limit=PER_ROW_FIELD,
                setting=PER_ROW_SETTING,
                **details,
            )

    def _free(self, free: FreeSql) -> None:
        """Pairs from free SQL; a record in more pairs than the declared pattern allows is
        ambiguous."""
        with self._explained("match_sql", _FREE_VALUES):
            count = free.ask(self.most + 1)
            free.check_keys()
        self._check_count(count, "match_sql")
        pairs, links = free.pairs(self.rest["left"], self.rest["right"]), "links_sql"
        pairs = decided.allowed(pairs) if self._decided.unmatch else pairs
        count = self.engine.table("free_pairs", f"{pairs} LIMIT {self.most + 1}")
        self._check_count(count, "match_sql")
        count = self.engine.table(links, free.links("free_pairs"))
        self.engine.drop("free_pairs")
        linked = Linked(
            name="match_sql",
            pattern="sql",
            number=1,
            rows=links,
            links=count,
            lead=free.lead,
        )
        self.links.append(linked)
        self._take_out(links, "sql")

    def _stream(self, sql: str) -> Iterator[Rival]:
        for batch in self.engine.stream(sql):
            self._watch()
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
