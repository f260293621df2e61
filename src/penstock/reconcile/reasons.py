"""Why a record is unmatched: held against the records of the other side that have its key, matched or not.

The nearest of them is the one that fails the fewest conditions, of the earliest rule, closest in amount and days. What
it fails says the reason; if it fails nothing, somebody else took it (or, for a sum, the sum was wrong: but one record
alone makes no sum, and there the earlier rules know better). A record whose twin with the same primary key is matched
is a duplicate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.reconcile.recipe import SumWithin

if TYPE_CHECKING:
    from penstock.reconcile.clauses import Clause
    from penstock.reconcile.matching import Matching
    from penstock.reconcile.recipe import SideName
    from penstock.reconcile.rules import RulePlan

REASONS = (
    "no_key",
    "amount_out_of_tolerance",
    "date_out_of_window",
    "other_condition",
    "duplicate",
    "ambiguous",
    "sum_mismatch",
)
_FAILED = {"amount": "amount_out_of_tolerance", "date": "date_out_of_window", "other": "other_condition"}
_AWAY = "DECIMAL(38, 6)"


def explain(matching: Matching, side: SideName) -> str:
    """The table of a side's breaks: `(_id, reason, n, o, away, days)`, where `o` is the nearest record of the other."""
    me = "l" if side == "left" else "r"
    rest = matching.rest[side]
    keyed = [plan for plan in matching.plans if plan.keyed]
    near = [name for plan in keyed if (name := _near(matching, plan, me, rest)) is not None]
    twins = _twins(matching, me)
    table = f"breaks_{me}"
    without = "'no_key'" if keyed and len(near) == len(keyed) else "'other_condition'"
    matching.engine.table(table, _breaks(rest, near, twins, len(_keys(matching, me)), without))
    return table


def _breaks(rest: str, near: list[str], twins: str | None, keys: int, without: str) -> str:
    joins, columns, twin = "", "CAST(NULL AS BIGINT) AS n, CAST(NULL AS BIGINT) AS o,", "FALSE"
    away = f"CAST(NULL AS {_AWAY}) AS away, CAST(NULL AS BIGINT) AS days"
    said = without
    if near:
        union = " UNION ALL ".join(f"SELECT * FROM {name}" for name in near)
        best = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY fails, n) AS place FROM ({union}) AS a"
        joins += f" LEFT JOIN (SELECT * FROM ({best}) AS b WHERE place = 1) AS c ON c.u = x._id"
        columns, away = "c.n, c.o,", "c.away, c.days"
        said = f"COALESCE(c.why, {without})"
    if twins is not None:
        on = " AND ".join(f"t.p{number} = x.p{number}" for number in range(keys))
        joins += f" LEFT JOIN {twins} AS t ON {on}"
        twin = "t.p0 IS NOT NULL"
    reason = f"CASE WHEN {twin} THEN 'duplicate' ELSE {said} END AS reason"
    return f"SELECT x._id, {reason}, {columns} {away} FROM {rest} AS x{joins}"


def _near(matching: Matching, plan: RulePlan, me: str, rest: str) -> str | None:
    """Each break's nearest by one rule; None when there are too many to look at."""
    it = "r" if me == "l" else "l"
    mine, its = (rest, _others(plan, it)) if me == "l" else (_others(plan, it), rest)
    on = " AND ".join(clause.sql for clause in plan.keyed)
    looked = plan.table(f"looked_{me}")
    pairs = f"SELECT {me}._id AS u, {it}._id AS o, {_judged(plan)} FROM {mine} AS l JOIN {its} AS r ON {on}"
    if matching.engine.table(looked, f"{pairs} LIMIT {matching.most + 1}") > matching.most:
        matching.engine.drop(looked)
        return None
    ranks = "".join(f", k{number} NULLS LAST" for number in range(len(plan.ranks)))
    name = plan.table(f"near_{me}")
    order = f"PARTITION BY u ORDER BY fails{ranks}, {', '.join([*_ties(matching, it), 'o'])}"
    matching.engine.table(
        name,
        f"SELECT u, o, CAST({plan.number} AS BIGINT) AS n, fails + alone AS fails, why, away, days FROM (SELECT c.*,"
        f" {_alone(plan, me)} AS alone, ROW_NUMBER() OVER ({order}) AS place"
        f" FROM {looked} AS c JOIN {it} AS i ON i._id = c.o) AS d WHERE place = 1",
    )
    matching.engine.drop(looked)
    return name


def _alone(plan: RulePlan, me: str) -> str:
    """1 where the single record of a sum has one counterpart only."""
    if plan.sum is None or plan.rule.pattern == "M:N":
        return "0"
    single = "u" if (me == "l") == (plan.rule.pattern == "1:N") else "o"
    return f"CASE WHEN COUNT(*) OVER (PARTITION BY c.{single}) = 1 THEN 1 ELSE 0 END"


def _others(plan: RulePlan, it: str) -> str:
    """All records of the other side; where groups are summed, one of each group stands for it."""
    if plan.rule.pattern != "M:N":
        return it
    keys = ", ".join(clause.sides[0 if it == "l" else 1] for clause in plan.keyed)
    first = f"SELECT MIN(_id) AS id FROM {it} GROUP BY {keys}"
    return f"(SELECT {it}.* FROM {it} JOIN ({first}) AS f ON f.id = {it}._id)"


def _judged(plan: RulePlan) -> str:
    rest = [
        clause
        for clause, condition in zip(plan.clauses, plan.rule.conditions, strict=True)
        if clause.category != "key" and not isinstance(condition, SumWithin)
    ]
    fails = " + ".join(f"CASE WHEN {clause.sql} THEN 0 ELSE 1 END" for clause in rest) or "0"
    whys = "".join(f" WHEN {clause.sql} IS NOT TRUE THEN '{_FAILED[clause.category]}'" for clause in rest)
    last = "ambiguous" if plan.rule.pattern == "1:1" else "sum_mismatch"
    why = f"CASE{whys} ELSE '{last}' END" if whys else f"'{last}'"
    ranks = "".join(f", {rank} AS k{number}" for number, rank in enumerate(plan.ranks))
    return f"{fails} AS fails, {why} AS why, {_away(plan)} AS away, {_days(rest)} AS days{ranks}"


def _away(plan: RulePlan) -> str:
    """How much more the right amount is than the left one."""
    if plan.sum is not None:
        return f"CAST({plan.sum.right} - {plan.sum.left} AS {_AWAY})"
    amount = next((clause for clause in plan.clauses if clause.category == "amount"), None)
    return f"CAST({amount.sides[1]} - {amount.sides[0]} AS {_AWAY})" if amount else f"CAST(NULL AS {_AWAY})"


def _days(rest: list[Clause]) -> str:
    window = next((clause for clause in rest if clause.category == "date"), None)
    return f"CAST({window.sides[1]} - {window.sides[0]} AS BIGINT)" if window else "CAST(NULL AS BIGINT)"


def _ties(matching: Matching, side: str) -> list[str]:
    return [f"i.{key} NULLS LAST" for key in _keys(matching, side)]


def _keys(matching: Matching, side: str) -> list[str]:
    key = matching.recipe.sources.left.primary_key if side == "l" else matching.recipe.sources.right.primary_key
    return [f"p{number}" for number in range(len(key))]


def _twins(matching: Matching, side: str) -> str | None:
    """Primary keys that are there more than once and of which one is matched; None when no key is."""
    keys = ", ".join(_keys(matching, side))
    repeated = f"repeated_{side}"
    if not matching.engine.table(
        repeated, f"SELECT {keys}, COUNT(*) AS times FROM {side} GROUP BY {keys} HAVING COUNT(*) > 1"
    ):
        return None
    name = f"twins_{side}"
    taken = " UNION ALL ".join(f"SELECT {side} AS id FROM {linked.table}" for linked in matching.links)
    on = " AND ".join(f"d.{key} = x.{key}" for key in _keys(matching, side))
    chosen = ", ".join(f"x.{key}" for key in _keys(matching, side))
    matching.engine.table(
        name,
        f"SELECT DISTINCT {chosen} FROM {side} AS x JOIN ({taken}) AS m ON m.id = x._id JOIN {repeated} AS d ON {on}",
    )
    return name
