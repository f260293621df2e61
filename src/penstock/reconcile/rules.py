"""Rules become statements over the pools: candidates, who is contested, sums, groups.

Every rule leaves a table of links `(g, l, r, s, ambiguous)`: the group it made, a record of each side, the score in
ten-thousandths; those of pairs and sums also carry what is asked of their records later. A 1:1 rule's candidates are
ordered by score, then by how far amounts and days are apart, then by the primary keys; taking them in that order, each
record once, is the rule. Only contested ones need the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.reconcile.amounts import within_sql
from penstock.reconcile.clauses import FULL_SCORE
from penstock.reconcile.recipe import SumWithin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.reconcile.amounts import Width
    from penstock.reconcile.carried import Carried
    from penstock.reconcile.clauses import Clause, Transpiler
    from penstock.reconcile.recipe import Recipe, Rule

STEPS = ("bl", "br", "b", "rivals", "whole", "groups", "zipped", "chosen")
"""The tables on the way to a rule's links, beside its candidates, which nobody needs after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    within: SumWithin
    size: Width
    left: str
    right: str

    def holds(self, left: str, right: str) -> str:
        return within_sql(self.within, self.size.cast(left), self.size.cast(right), self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePlan:
    """One rule in SQL."""

    number: int
    rule: Rule
    clauses: Sequence[Clause]
    sum: Sum | None
    carried: Carried

    @property
    def keyed(self) -> Sequence[Clause]:
        return [clause for clause in self.clauses if clause.category == "key"]

    @property
    def ranks(self) -> Sequence[str]:
        return [clause.rank for clause in self.clauses if clause.rank is not None]

    @property
    def on(self) -> str:
        return " AND ".join(clause.sql for clause in self.clauses)

    @property
    def score(self) -> str:
        scores = [clause.score for clause in self.clauses if clause.score is not None]
        if not scores:
            return f"CAST({FULL_SCORE} AS BIGINT)"
        return scores[0] if len(scores) == 1 else f"LEAST({', '.join(scores)})"

    def candidates(self, left: str, right: str) -> str:
        columns = ["l._id AS l", "r._id AS r", f"{self.score} AS s"]
        columns += [] if self.sum is None else [f"{self.sum.left} AS a", f"{self.sum.right} AS b"]
        columns += self.carried.selected
        return f"SELECT {', '.join(columns)} FROM {left} AS l JOIN {right} AS r ON {self.on}"

    def contested(self, side: str) -> str:
        """Records of one side with more than one candidate."""
        return f"SELECT {side} FROM {self.table('cand')} GROUP BY {side} HAVING COUNT(*) > 1"

    def disputes(self) -> str:
        """The candidates that are not each other's only one, best first."""
        named = "".join(f", {rank} AS k{number}" for number, rank in enumerate(self.ranks))
        ranks = "".join(f", k{number}" for number in range(len(self.ranks)))
        return (
            f"SELECT c.l, c.r, c.s{named} FROM {self.table('cand')} AS c {self._busy()}"
            f" JOIN l ON l._id = c.l JOIN r ON r._id = c.r WHERE bl.l IS NOT NULL OR br.r IS NOT NULL"
            f" ORDER BY c.s DESC{ranks}, {self.order('l')}, {self.order('r')}"
        )

    def settled(self) -> str:
        """The candidates that are each other's only one, and those that were chosen."""
        return f"{self._linked('c.l')} {self._busy()} WHERE bl.l IS NULL AND br.r IS NULL UNION ALL {self._chosen()}"

    def uncontested(self) -> str:
        return self._linked("c.l")

    def _linked(self, group: str) -> str:
        return (
            f"SELECT {group} AS g, c.l, c.r, c.s, FALSE AS ambiguous{self.carried.of('c')}"
            f" FROM {self.table('cand')} AS c"
        )

    def _chosen(self) -> str:
        return (
            f"SELECT h.g, h.l, h.r, h.s, h.ambiguous{self.carried.of('c')} FROM {self.table('chosen')} AS h"
            f" JOIN {self.table('cand')} AS c ON c.l = h.l AND c.r = h.r"
        )

    def _busy(self) -> str:
        return f"LEFT JOIN {self.table('bl')} AS bl ON bl.l = c.l LEFT JOIN {self.table('br')} AS br ON br.r = c.r"

    # 1:N and M:1: `one` has the single record, `many` its parts

    @property
    def one(self) -> str:
        return "l" if self.rule.pattern == "1:N" else "r"

    @property
    def many(self) -> str:
        return "r" if self.rule.pattern == "1:N" else "l"

    def rivals(self) -> str:
        """Single records that want a part which another one wants too."""
        return (
            f"SELECT DISTINCT c.{self.one} FROM {self.table('cand')} AS c"
            f" JOIN {self.table('b')} AS b ON b.{self.many} = c.{self.many}"
        )

    def whole(self) -> str:
        """Single records without rivals whose parts make up their amount."""
        holds = self._sum.holds("MAX(c.a)", "SUM(c.b)") if self.one == "l" else self._sum.holds("SUM(c.a)", "MAX(c.b)")
        return (
            f"SELECT c.{self.one} FROM {self.table('cand')} AS c LEFT JOIN {self.table('rivals')} AS v"
            f" ON v.{self.one} = c.{self.one} WHERE v.{self.one} IS NULL GROUP BY c.{self.one} HAVING {holds}"
        )

    def rivalry(self) -> str:
        """The parts that rivals want, in the order in which the rivals choose."""
        return (
            f"SELECT c.{self.one}, c.{self.many}, c.s, c.a, c.b, b.{self.many} IS NOT NULL AS wanted"
            f" FROM {self.table('cand')} AS c JOIN {self.table('rivals')} AS v ON v.{self.one} = c.{self.one}"
            f" LEFT JOIN {self.table('b')} AS b ON b.{self.many} = c.{self.many}"
            f" JOIN l ON l._id = c.l JOIN r ON r._id = c.r ORDER BY {self.order(self.one)}, {self.order(self.many)}"
        )

    def summed(self) -> str:
        return (
            f"{self._linked(f'c.{self.one}')} JOIN {self.table('whole')} AS w ON w.{self.one} = c.{self.one}"
            f" UNION ALL {self._chosen()}"
        )

    # groups on both sides

    def groups(self, left: str, right: str) -> str:
        """Groups of equal keys whose sums agree; a group is named by its first left record."""
        on = " AND ".join(f"gl.k{n} = gr.k{n}" for n in range(len(self.keyed)))
        names = ", ".join(f"gl.k{n}" for n in range(len(self.keyed)))
        return (
            f"SELECT gl.g, {names} FROM ({self._grouped('l', left)}) AS gl JOIN ({self._grouped('r', right)}) AS gr"
            f" ON {on} WHERE {self._sum.holds('gl.a', 'gr.a')}"
        )

    def zipped(self, left: str, right: str) -> str:
        """The members of both sides beside each other, each once."""
        return (
            f"SELECT COALESCE(ml.g, mr.g) AS g, ml._id AS l, mr._id AS r, CAST({FULL_SCORE} AS BIGINT) AS s,"
            f" FALSE AS ambiguous FROM ({self._members('l', left)}) AS ml FULL JOIN ({self._members('r', right)}) AS mr"
            " ON ml.g = mr.g AND ml.n = mr.n"
        )

    def _grouped(self, side: str, pool: str) -> str:
        index, amount = (0, self._sum.left) if side == "l" else (1, self._sum.right)
        keys = [clause.sides[index] for clause in self.keyed]
        named = ", ".join(f"{key} AS k{number}" for number, key in enumerate(keys))
        there = " AND ".join(f"{value} IS NOT NULL" for value in [*keys, amount])
        return (
            f"SELECT {named}, SUM({amount}) AS a, MIN({side}._id) AS g FROM {pool} AS {side} WHERE {there}"
            f" GROUP BY {', '.join(keys)}"
        )

    def _members(self, side: str, pool: str) -> str:
        index, amount = (0, self._sum.left) if side == "l" else (1, self._sum.right)
        on = " AND ".join(f"g.k{number} = {clause.sides[index]}" for number, clause in enumerate(self.keyed))
        return (
            f"SELECT g.g, {side}._id, ROW_NUMBER() OVER (PARTITION BY g.g ORDER BY {self.order(side)}) AS n"
            f" FROM {self.table('groups')} AS g JOIN {pool} AS {side} ON {on} WHERE {amount} IS NOT NULL"
        )

    def order(self, side: str) -> str:
        keys = (self.carried.left if side == "l" else self.carried.right).keys
        return ", ".join([*(f"{side}.{key} NULLS LAST" for key in keys), f"{side}._id"])

    def table(self, what: str) -> str:
        return f"{what}_{self.number}"

    @property
    def links(self) -> str:
        return self.table("links")

    @property
    def _sum(self) -> Sum:
        if self.sum is None:
            raise TypeError(f"rule {self.rule.name} has no sum")
        return self.sum


def left_over(pool: str, links: str, side: str) -> str:
    taken = f"SELECT 1 FROM (SELECT {side} AS taken FROM {links}) AS m WHERE m.taken = {side}._id"
    return f"SELECT {side}.* FROM {pool} AS {side} WHERE NOT EXISTS ({taken})"


def plan_rules(recipe: Recipe, transpiler: Transpiler, carried: Carried) -> list[RulePlan]:
    return [_plan(number, rule, transpiler, carried) for number, rule in enumerate(recipe.rules)]


def _plan(number: int, rule: Rule, transpiler: Transpiler, carried: Carried) -> RulePlan:
    clauses = [transpiler.clause(condition) for condition in rule.conditions]
    return RulePlan(number=number, rule=rule, clauses=clauses, sum=_sum(rule, transpiler), carried=carried)


def _sum(rule: Rule, transpiler: Transpiler) -> Sum | None:
    for condition in rule.conditions:
        if isinstance(condition, SumWithin):
            size = transpiler.size(condition)
            left, right = transpiler.amounts(condition, size)
            return Sum(within=condition, size=size.of_sums, left=left, right=right)
    return None
