"""Why a record is unmatched: held against the records of the other side that have its key, matched or not.

The nearest of them is the one that fails the fewest conditions, of the earliest rule, closest in amount and days. What
it fails says the reason; if it fails nothing, somebody else took it (or, for a sum, the sum was wrong: but one record
alone makes no sum, and there the earlier rules know better). A record whose twin with the same primary key is matched
is a duplicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.reconcile.recipe import SumWithin

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_WORDS = " ".join(f"WHEN {number} THEN '{reason}'" for number, reason in enumerate(REASONS))
_AWAY = "DECIMAL(38, 6)"


def explain(matching: Matching, side: SideName, repeated: str | None) -> str:
    """The table of a side's breaks: `(_id, reason, n, away, days, q0…)` and what is totalled, where `q0…` is the key of
    the nearest record of the other side and `n` the rule that says so. `repeated` is the table of keys that are there
    more than once."""
    keyed = [plan for plan in matching.plans if plan.keyed]
    near: list[Near] = []
    for plan in keyed:
        found = _near(matching, plan, side)
        if found is not None:
            near.append(found if len(keyed) == 1 else _kept(matching, plan.table(f"near_{side[0]}"), found))
    without = "'no_key'" if keyed and len(near) == len(keyed) else "'other_condition'"
    twin, twins = ("FALSE", "") if repeated is None else _twin(matching, side, repeated)
    told = [f"c.{name}" for name in ("n", "away", "days", *_theirs(matching, side))]
    told += [f"x.{name}" for name in matching.carried.side(side).totals]
    table = f"breaks_{side[0]}"
    matching.engine.table(
        table,
        f"SELECT x._id, CASE WHEN {twin} THEN 'duplicate' ELSE CASE c.why {_WORDS} ELSE {without} END END AS reason,"
        f" {', '.join(told)} FROM {matching.rest[side]} AS x"
        f" LEFT JOIN {_nearest(matching, [each.sql for each in near], side)} AS c ON c.u = x._id{twins}",
    )
    for done in (name for each in near for name in each.tables):
        matching.engine.drop(done)
    return table


def _nearest(matching: Matching, near: list[str], side: SideName) -> str:
    """Of the nearest by every rule the one that fails least, by the earliest rule."""
    match near:
        case []:
            it = _other(side)[0]
            nobody = "CAST(NULL AS BIGINT) AS u, CAST(NULL AS BIGINT) AS n, CAST(NULL AS BIGINT) AS why"
            apart = f"CAST(NULL AS {_AWAY}) AS away, CAST(NULL AS BIGINT) AS days"
            return f"(SELECT {nobody}, {apart}, {_named(matching, side)} FROM {it} WHERE 1 = 0)"
        case [only]:
            return only
    union = " UNION ALL ".join(f"SELECT * FROM {each} AS one" for each in near)
    best = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY fails, n) AS place FROM ({union}) AS a"
    return f"(SELECT * FROM ({best}) AS b WHERE place = 1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Each break's nearest by one rule, and the tables that this takes them from."""

    sql: str
    tables: Sequence[str]


def _kept(matching: Matching, table: str, found: Near) -> Near:
    """In a table, so that what was looked at for one rule goes before the next one looks."""
    matching.engine.table(table, f"SELECT * FROM {found.sql} AS one")
    for done in found.tables:
        matching.engine.drop(done)
    return Near(sql=table, tables=(table,))


def _near(matching: Matching, plan: RulePlan, side: SideName) -> Near | None:
    """None when there are too many to look at."""
    me, it = side[0], _other(side)[0]
    pools = {me: matching.rest[side], it: _others(plan, it)}
    pairs = (
        f"SELECT {me}._id AS u, {it}._id AS o, {_named(matching, side)}, {_judged(plan)}"
        f" FROM {pools['l']} AS l JOIN {pools['r']} AS r ON {' AND '.join(clause.sql for clause in plan.keyed)}"
    )
    looked, several, first = (plan.table(f"{what}_{me}") for what in ("looked", "several", "first"))
    if matching.engine.table(looked, f"{pairs} LIMIT {matching.most + 1}") > matching.most:
        matching.engine.drop(looked)
        return None
    theirs = _theirs(matching, side)
    told = f"SELECT u, CAST({plan.number} AS BIGINT) AS n, fails + alone AS fails, why, away, days, {', '.join(theirs)}"
    judged = f"SELECT c.*, {_alone(plan, me)} AS alone FROM {looked} AS c"
    if not matching.engine.table(several, f"SELECT u AS s FROM {looked} GROUP BY u HAVING COUNT(*) > 1"):
        return Near(sql=f"({told} FROM ({judged}) AS d)", tables=(looked, several))
    better = [*(f"k{number}" for number in range(len(plan.ranks))), *theirs]
    order = ", ".join(["fails", *(f"{name} NULLS LAST" for name in better), "o"])
    places = f"SELECT d.*, ROW_NUMBER() OVER (PARTITION BY u ORDER BY {order}) AS place FROM ({judged}) AS d"
    matching.engine.table(first, f"{told} FROM ({places} JOIN {several} ON s = d.u) AS e WHERE place = 1")
    single = f"{told} FROM ({judged}) AS d WHERE NOT EXISTS (SELECT 1 FROM {several} WHERE s = d.u)"
    return Near(sql=f"({single} UNION ALL SELECT * FROM {first})", tables=(looked, several, first))


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
    whys = "".join(f" WHEN {clause.sql} IS NOT TRUE THEN {_number(_FAILED[clause.category])}" for clause in rest)
    last = _number("ambiguous" if plan.rule.pattern == "1:1" else "sum_mismatch")
    why = f"CASE{whys} ELSE {last} END" if whys else last
    ranks = "".join(f", {rank} AS k{number}" for number, rank in enumerate(plan.ranks))
    return f"{fails} AS fails, {why} AS why, {_away(plan)} AS away, {_days(rest)} AS days{ranks}"


def _number(reason: str) -> str:
    return f"CAST({REASONS.index(reason)} AS BIGINT)"


def _away(plan: RulePlan) -> str:
    """How much more the right amount is than the left one."""
    if plan.sum is not None:
        return f"CAST({plan.sum.right} - {plan.sum.left} AS {_AWAY})"
    amount = next((clause for clause in plan.clauses if clause.category == "amount"), None)
    return f"CAST({amount.sides[1]} - {amount.sides[0]} AS {_AWAY})" if amount else f"CAST(NULL AS {_AWAY})"


def _days(rest: list[Clause]) -> str:
    window = next((clause for clause in rest if clause.category == "date"), None)
    return f"CAST({window.sides[1]} - {window.sides[0]} AS BIGINT)" if window else "CAST(NULL AS BIGINT)"


def _other(side: SideName) -> SideName:
    return "right" if side == "left" else "left"


def _theirs(matching: Matching, side: SideName) -> list[str]:
    """What the key of the nearest is called."""
    return [key.replace("p", "q") for key in matching.carried.side(_other(side)).keys]


def _named(matching: Matching, side: SideName) -> str:
    it = _other(side)
    keys = zip(matching.carried.side(it).keys, _theirs(matching, side), strict=True)
    return ", ".join(f"{it[0]}.{key} AS {name}" for key, name in keys)


def _twin(matching: Matching, side: SideName, repeated: str) -> tuple[str, str]:
    """Whether a record `x` has a twin with its primary key that is matched, and what to join to know it."""
    me, keys = side[0], matching.carried.side(side).keys
    taken = " UNION ALL ".join(f"SELECT {me} AS id FROM {linked.rows} AS k" for linked in matching.links)
    on = " AND ".join(f"d.{key} = x.{key}" for key in keys)
    chosen = ", ".join(f"x.{key}" for key in keys)
    twins = f"twins_{me}"
    matching.engine.table(
        twins,
        f"SELECT DISTINCT {chosen} FROM {me} AS x JOIN ({taken}) AS m ON m.id = x._id JOIN {repeated} AS d ON {on}",
    )
    return "t.p0 IS NOT NULL", f" LEFT JOIN {twins} AS t ON {' AND '.join(f't.{key} = x.{key}' for key in keys)}"
