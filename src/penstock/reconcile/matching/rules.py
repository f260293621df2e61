"""Compiles rules to statements over the pools: candidates, contested records, sums, groups.

Every rule writes a table of links `(g, l, r, s, ambiguous)`: the group, a record of each side, the
score in ten-thousandths; links of pairs and sums also have the carried columns of their records. In
a 1:1 rule, candidates that are each other's only one are links; the others are assigned by
`clusters`. A rule with sums also writes a table `miss` of the compared sums that do not agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.reconcile.matching.amounts import FULL, within_sql
from penstock.reconcile.matching.clauses import FULL_SCORE
from penstock.reconcile.recipes.model import SumWithin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.reconcile.matching.amounts import Width
    from penstock.reconcile.matching.carried import Carried
    from penstock.reconcile.matching.clauses import Clause, Transpiler
    from penstock.reconcile.recipes.model import Recipe, Rule

STEPS = (
    *("bl", "br", "b", "rivals", "whole", "missed", "groups", "zipped", "chosen"),
    *("disputed", "orderl", "orderr", "competing", "labels", "large", "exact", "taken"),
)
"""Intermediate tables of a rule, besides its candidates; not needed after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    within: SumWithin
    size: Width
    left: str
    right: str

    def holds(self, left: str, right: str) -> str:
        return within_sql(self.within, self.size.cast(left), self.size.cast(right), self.size)

    def away(self, left: str, right: str) -> str:
        """Right minus left, for sums."""
        away = f"{self.size.cast(right)} - {self.size.cast(left)}"
        return f"CAST({away} AS DECIMAL({FULL}, {self.size.scale}))"


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePlan:
    """The SQL of one rule."""

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
    def rank_names(self) -> Sequence[str]:
        return [f"k{number}" for number in range(len(self.ranks))]

    @property
    def named_ranks(self) -> str:
        """The ranks as additional columns of a statement over `l` and `r`."""
        pairs = zip(self.ranks, self.rank_names, strict=True)
        return "".join(f", {rank} AS {name}" for rank, name in pairs)

    @property
    def rank_scales(self) -> Sequence[int]:
        return [clause.scale for clause in self.clauses if clause.rank is not None]

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

    def disputed(self) -> str:
        """Candidates that are not each other's only one."""
        return (
            f"SELECT c.l, c.r, c.s{self.named_ranks} FROM {self.table('cand')} AS c {self._busy()}"
            " JOIN l ON l._id = c.l JOIN r ON r._id = c.r"
            " WHERE bl.l IS NOT NULL OR br.r IS NOT NULL"
        )

    def ordered(self, side: str) -> str:
        """The contested records of a side, with their positions in key order, from 1."""
        those = f"SELECT DISTINCT {side} AS id FROM {self.table('disputed')}"
        records = f"({those}) AS d JOIN {side} ON {side}._id = d.id"
        return f"SELECT d.id, {numbered(self.order(side))} AS o FROM {records}"

    def competing(self) -> str:
        """The disputed candidates, with the positions of their records."""
        ranks = "".join(f", d.{name}" for name in self.rank_names)
        places = "CAST(x.o AS BIGINT) AS a, CAST(y.o AS BIGINT) AS b"
        joins = [f"JOIN {self.table('orderl')} AS x ON x.id = d.l"]
        joins += [f"JOIN {self.table('orderr')} AS y ON y.id = d.r"]
        disputed = f"{self.table('disputed')} AS d {' '.join(joins)}"
        return f"SELECT {places}, d.l, d.r, d.s{ranks} FROM {disputed}"

    def flagged(self, taken: str) -> str:
        """Links that were chosen one after the other (`g` is their position), with whether they are
        ambiguous: whether one of the two records had another candidate, then still free, that
        was exactly as good."""
        competing = self.table("competing")
        same = " AND ".join(f"o.{name} = mine.{name}" for name in ("s", *self.rank_names))
        own = f"{taken} AS t JOIN {competing} AS mine ON mine.l = t.l AND mine.r = t.r"
        others = " UNION ".join(
            f"SELECT t.g FROM {own}"
            f" JOIN {competing} AS o ON o.{me} = t.{me} AND o.{it} <> t.{it} AND {same}"
            f" LEFT JOIN {taken} AS u ON u.{it} = o.{it} WHERE u.g IS NULL OR u.g > t.g"
            for me, it in (("l", "r"), ("r", "l"))
        )
        return (
            f"SELECT t.l AS g, t.l, t.r, t.s, n.g IS NOT NULL AS ambiguous FROM {taken} AS t"
            f" LEFT JOIN ({others}) AS n ON n.g = t.g"
        )

    def settled(self) -> str:
        """Candidates that are each other's only one, and the chosen ones."""
        return (
            f"{self._linked('c.l')} {self._busy()} WHERE bl.l IS NULL AND br.r IS NULL"
            f" UNION ALL {self._chosen()}"
        )

    def uncontested(self) -> str:
        return self._linked("c.l")

    def _linked(self, group: str) -> str:
        return (
            f"SELECT {group} AS g, c.l, c.r, c.s, FALSE AS ambiguous{self.carried.of('c')}"
            f" FROM {self.table('cand')} AS c"
        )

    def _chosen(self) -> str:
        return (
            f"SELECT h.g, h.l, h.r, h.s, h.ambiguous{self.carried.of('c')}"
            f" FROM {self.table('chosen')} AS h"
            f" JOIN {self.table('cand')} AS c ON c.l = h.l AND c.r = h.r"
        )

    def _busy(self) -> str:
        return (
            f"LEFT JOIN {self.table('bl')} AS bl ON bl.l = c.l"
            f" LEFT JOIN {self.table('br')} AS br ON br.r = c.r"
        )

    # 1:N and M:1: `one` has the single record, `many` its parts

    @property
    def one(self) -> str:
        return "l" if self.rule.pattern == "1:N" else "r"

    @property
    def many(self) -> str:
        return "r" if self.rule.pattern == "1:N" else "l"

    def rivals(self) -> str:
        """Single records that share a candidate part with another one."""
        return (
            f"SELECT DISTINCT c.{self.one} FROM {self.table('cand')} AS c"
            f" JOIN {self.table('b')} AS b ON b.{self.many} = c.{self.many}"
        )

    def shared_parts(self) -> str:
        """The parts that several single records compete for, numbered from 1."""
        part = f"q.{self.many}"
        return f"SELECT {part}, {numbered(part)} AS o FROM ({self.contested(self.many)}) AS q"

    def whole(self) -> str:
        """Single records without rivals whose parts add up to their amount."""
        holds = self._sum.holds(*self._part_sums)
        return f"SELECT c.{self.one} FROM {self._alone()} HAVING {holds}"

    def missed(self, rivals: str) -> str:
        """Single records whose parts do not, with right minus left and the number of parts;
        `rivals` is the table of those with rivals."""
        sums = self._part_sums
        missed = f"c.{self.one} AS one, {self._sum.away(*sums)} AS away, COUNT(*) AS parts"
        return (
            f"SELECT {missed} FROM {self._alone()} HAVING NOT {self._sum.holds(*sums)}"
            f" UNION ALL SELECT one, away, parts FROM {rivals}"
        )

    def _alone(self) -> str:
        return (
            f"{self.table('cand')} AS c LEFT JOIN {self.table('rivals')} AS v"
            f" ON v.{self.one} = c.{self.one} WHERE v.{self.one} IS NULL GROUP BY c.{self.one}"
        )

    @property
    def _part_sums(self) -> tuple[str, str]:
        return ("MAX(c.a)", "SUM(c.b)") if self.one == "l" else ("SUM(c.a)", "MAX(c.b)")

    def rivalry(self) -> str:
        """Candidate parts of rivals, in the order in which the rivals choose."""
        return (
            f"SELECT c.{self.one}, c.{self.many}, c.s, c.a, c.b, b.o"
            f" FROM {self.table('cand')} AS c JOIN {self.table('rivals')} AS v"
            f" ON v.{self.one} = c.{self.one}"
            f" LEFT JOIN {self.table('b')} AS b ON b.{self.many} = c.{self.many}"
            " JOIN l ON l._id = c.l JOIN r ON r._id = c.r"
            f" ORDER BY {self.order(self.one)}, {self.order(self.many)}"
        )

    def summed(self) -> str:
        return (
            f"{self._linked(f'c.{self.one}')} JOIN {self.table('whole')} AS w"
            f" ON w.{self.one} = c.{self.one}"
            f" UNION ALL {self._chosen()}"
        )

    # groups on both sides

    def groups(self, left: str, right: str) -> str:
        """Groups of equal keys whose sums agree; a group is identified by its first left record."""
        names = ", ".join(f"gl.k{n}" for n in range(len(self.keyed)))
        holds = self._sum.holds("gl.a", "gr.a")
        return f"SELECT gl.g, {names} FROM {self._both(left, right)} WHERE {holds}"

    def missed_groups(self, left: str, right: str) -> str:
        """Keys of groups whose sums disagree, with right minus left."""
        names = ", ".join(f"gl.k{n}" for n in range(len(self.keyed)))
        away, holds = self._sum.away("gl.a", "gr.a"), self._sum.holds("gl.a", "gr.a")
        missed = f"{names}, {away} AS away, gl.parts + gr.parts AS parts"
        return f"SELECT {missed} FROM {self._both(left, right)} WHERE NOT {holds}"

    def _both(self, left: str, right: str) -> str:
        on = " AND ".join(f"gl.k{n} = gr.k{n}" for n in range(len(self.keyed)))
        one, other = self._grouped("l", left), self._grouped("r", right)
        return f"({one}) AS gl JOIN ({other}) AS gr ON {on}"

    def zipped(self, left: str, right: str) -> str:
        """The members of both sides paired by position, each once."""
        return (
            "SELECT COALESCE(ml.g, mr.g) AS g, ml._id AS l, mr._id AS r,"
            f" CAST({FULL_SCORE} AS BIGINT) AS s,"
            f" FALSE AS ambiguous FROM ({self._members('l', left)}) AS ml"
            f" FULL JOIN ({self._members('r', right)}) AS mr"
            " ON ml.g = mr.g AND ml.n = mr.n"
        )

    def _grouped(self, side: str, pool: str) -> str:
        index, amount = (0, self._sum.left) if side == "l" else (1, self._sum.right)
        keys = [clause.sides[index] for clause in self.keyed]
        named = ", ".join(f"{key} AS k{number}" for number, key in enumerate(keys))
        there = " AND ".join(f"{value} IS NOT NULL" for value in [*keys, amount])
        sums = f"SUM({amount}) AS a, MIN({side}._id) AS g, COUNT(*) AS parts"
        group = f"GROUP BY {', '.join(keys)}"
        return f"SELECT {named}, {sums} FROM {pool} AS {side} WHERE {there} {group}"

    def _members(self, side: str, pool: str) -> str:
        index, amount = (0, self._sum.left) if side == "l" else (1, self._sum.right)
        on = " AND ".join(
            f"g.k{number} = {clause.sides[index]}" for number, clause in enumerate(self.keyed)
        )
        return (
            f"SELECT g.g, {side}._id, {numbered(self.order(side), within='g.g')} AS n"
            f" FROM {self.table('groups')} AS g JOIN {pool} AS {side} ON {on}"
            f" WHERE {amount} IS NOT NULL"
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
    def miss(self) -> str:
        """The table of compared sums that do not agree."""
        return self.table("miss")

    @property
    def _sum(self) -> Sum:
        if self.sum is None:
            raise TypeError(f"rule {self.rule.name} has no sum")
        return self.sum


def numbered(order: str, within: str | None = None) -> str:
    """Row number of a row in an order, from 1. Without a ROWS frame DataFusion would compare
    values, and refuses times and bytes."""
    part = "" if within is None else f"PARTITION BY {within} "
    frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return f"ROW_NUMBER() OVER ({part}ORDER BY {order} {frame})"


def left_over(pool: str, links: str, side: str) -> str:
    taken = f"SELECT 1 FROM (SELECT {side} AS taken FROM {links}) AS m WHERE m.taken = {side}._id"
    return f"SELECT {side}.* FROM {pool} AS {side} WHERE NOT EXISTS ({taken})"


def plan_rules(recipe: Recipe, transpiler: Transpiler, carried: Carried) -> list[RulePlan]:
    return [_plan(number, rule, transpiler, carried) for number, rule in enumerate(recipe.rules)]


def _plan(number: int, rule: Rule, transpiler: Transpiler, carried: Carried) -> RulePlan:
    clauses = [transpiler.clause(condition) for condition in rule.conditions]
    return RulePlan(
        number=number, rule=rule, clauses=clauses, sum=_sum(rule, transpiler), carried=carried
    )


def _sum(rule: Rule, transpiler: Transpiler) -> Sum | None:
    for condition in rule.conditions:
        if isinstance(condition, SumWithin):
            size = transpiler.size(condition)
            left, right = transpiler.amounts(condition, size)
            return Sum(within=condition, size=size.of_sums(condition), left=left, right=right)
    return None
