"""Why a record is unmatched: compares it with the records of the other side that have its key,
matched or not.

The nearest of them fails the fewest conditions, of the earliest rule, closest in amount and days.
The condition that it fails is the reason. If it fails none, the sum was wrong, where one was
compared; otherwise another record took it. A single part makes no sum, nor does one that never was
compared: that counts as one failed condition, so that a rule which compares the two records
themselves gives the reason. A record whose twin with the same primary key is matched is a
duplicate.

Where many records share a key the pairs are examined in slices, records with the fewest candidates
first, up to a limit; the reason of records beyond it is `not_examined`.

Free SQL does not tell which condition a pair fails; by the equalities that it joins the sides with,
a record has no key, no candidate, or one that the SQL rejects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.reconcile.matching.amounts import FULL
from penstock.reconcile.matching.rules import numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.reconcile.matching.clauses import Clause
    from penstock.reconcile.matching.free_sql import FreeReasons
    from penstock.reconcile.matching.matcher import Matching
    from penstock.reconcile.matching.rules import RulePlan
    from penstock.reconcile.recipes.model import SideName

REASONS = (
    "no_key",
    "amount_out_of_tolerance",
    "date_out_of_window",
    "other_condition",
    "duplicate",
    "ambiguous",
    "sum_mismatch",
    "no_candidate",
    "rejected_by_sql",
    "not_examined",
)
_FAILED = {
    "amount": "amount_out_of_tolerance",
    "date": "date_out_of_window",
    "other": "other_condition",
}
_WORDS = " ".join(f"WHEN {number} THEN '{reason}'" for number, reason in enumerate(REASONS))
LEAST_SCALE = 6
_MERGED = 20
"""Tables of slices that are put together as one, so that no statement names hundreds."""


def away_scale(matching: Matching) -> int:
    """Decimals of differences in evidence: from the types and the rules, never from values."""
    amounts = [c.scale for plan in matching.plans for c in plan.clauses if c.category == "amount"]
    return max(LEAST_SCALE, *amounts) if amounts else LEAST_SCALE


def explain(matching: Matching, side: SideName, repeated: str | None) -> str:
    """The table of a side's breaks: `(_id, reason, n, away, days, q0…)` and the totalled columns,
    where `q0…` is the key of the nearest record of the other side and `n` the rule that decided.
    `repeated` is the table of duplicate keys."""
    if matching.free is not None:
        return _explain_free(matching, side, repeated, matching.free.reasons(side))
    keyed = [plan for plan in matching.plans if plan.keyed]
    near = [_examined(matching, plan, side, alone=len(keyed) == 1) for plan in keyed]
    without = "'no_key'" if keyed else "'other_condition'"
    twin, twins = ("FALSE", "") if repeated is None else _twin(matching, side, repeated)
    skipped = [one.skipped for one in near if one.skipped is not None]
    explained = [f"c.{name}" for name in ("n", "away", "days", *_theirs(matching, side))]
    explained += [f"x.{name}" for name in matching.carried.side(side).totals]
    table = f"breaks_{side[0]}"
    reason = f"CASE WHEN {twin} THEN 'duplicate'"
    joins, on = "", "c.u = x._id"
    if skipped:
        union = " UNION ".join(f"SELECT s FROM {one} AS one" for one in skipped)
        joins, on = f" LEFT JOIN ({union}) AS y ON y.s = x._id", f"{on} AND y.s IS NULL"
        reason += " WHEN y.s IS NOT NULL THEN 'not_examined'"
    joins += f" LEFT JOIN {_nearest(matching, [one.sql for one in near], side)} AS c ON {on}"
    matching.engine.table(
        table,
        f"SELECT x._id, {reason} ELSE CASE c.why {_WORDS} ELSE {without} END END AS reason,"
        f" {', '.join(explained)} FROM {matching.rest[side]} AS x{joins}{twins}",
    )
    if skipped:
        count = f"SELECT COUNT(*) FROM {table} WHERE reason = 'not_examined'"
        [(matching.not_examined[side],)] = matching.engine.rows(count)
    for done in (name for one in near for name in one.tables):
        matching.engine.drop(done)
    return table


def _nearest(matching: Matching, near: list[str], side: SideName) -> str:
    """Over all rules, the nearest record that fails least, by the earliest rule."""
    match near:
        case []:
            it = _other(side)[0]
            no_candidate = (
                "CAST(NULL AS BIGINT) AS u, CAST(NULL AS BIGINT) AS n, CAST(NULL AS BIGINT) AS why"
            )
            apart = f"CAST(NULL AS {_away_type(matching)}) AS away, CAST(NULL AS BIGINT) AS days"
            return (
                f"(SELECT {no_candidate}, {apart}, {_named(matching, side)} FROM {it} WHERE 1 = 0)"
            )
        case [only]:
            return only
    union = " UNION ALL ".join(f"SELECT * FROM {relation} AS one" for relation in near)
    best = f"SELECT *, {numbered('fails, n', within='u')} AS place FROM ({union}) AS a"
    return f"(SELECT * FROM ({best}) AS b WHERE place = 1)"


def _explain_free(
    matching: Matching,
    side: SideName,
    repeated: str | None,
    free: FreeReasons,
) -> str:
    """The same for records for which free SQL returned no usable pair."""
    it = _other(side)
    twin, twins = ("FALSE", "") if repeated is None else _twin(matching, side, repeated)
    joins, has_candidate = "", "TRUE"
    if free.mine:
        keys = ", ".join(f"{sql} AS e{number}" for number, sql in enumerate(free.theirs))
        matching.engine.table("free_keys", f"SELECT DISTINCT {keys} FROM {it}_rows")
        equal = " AND ".join(f"k.e{number} = v.e{number}" for number in range(len(free.mine)))
        mine = ", ".join(f"{sql} AS e{number}" for number, sql in enumerate(free.mine))
        values = f"SELECT _id, {mine} FROM {side}_rows"
        joins = f" JOIN ({values}) AS v ON v._id = x._id LEFT JOIN free_keys AS k ON {equal}"
        has_candidate = "k.e0 IS NOT NULL"
    elif not matching.rows[it]:
        has_candidate = "FALSE"
    unkeyed = [free.nameless, *(f"v.e{number} IS NULL" for number in range(len(free.mine)))]
    nothing = [f"CAST(NULL AS {kind}) AS {name}" for kind, name in _nothing(matching)]
    nothing += [f"o.{key} AS {name}" for key, name in _key_names(matching, side)]
    totals = [f"x.{name}" for name in matching.carried.side(side).totals]
    table = f"breaks_{side[0]}"
    without = " OR ".join(f"({test})" for test in unkeyed)
    statement = [
        f"SELECT x._id, CASE WHEN {twin} THEN 'duplicate'",
        "WHEN a._id IS NOT NULL THEN 'ambiguous'",
        f"WHEN {without} THEN 'no_key'",
        f"WHEN {has_candidate} THEN 'rejected_by_sql' ELSE 'no_candidate' END AS reason,",
        f"{', '.join([*nothing, *totals])} FROM {matching.rest[side]} AS x",
        f"LEFT JOIN ({free.returned}) AS a ON a._id = x._id{joins}{twins}",
        f"LEFT JOIN {it[0]} AS o ON 1 = 0",
    ]
    matching.engine.table(table, " ".join(statement))
    matching.engine.drop("free_keys")
    return table


def _nothing(matching: Matching) -> list[tuple[str, str]]:
    return [("BIGINT", "n"), (_away_type(matching), "away"), ("BIGINT", "days")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Each break's nearest record by one rule, and the tables that it reads from. `skipped` is the
    table of breaks that were not examined, if any."""

    sql: str
    tables: Sequence[str]
    skipped: str | None = None


def _materialized(matching: Matching, table: str, nearest: Near) -> Near:
    """Written to a table, so that the pairs of one rule can be dropped before the next rule."""
    matching.engine.table(table, f"SELECT * FROM {nearest.sql} AS one")
    for done in nearest.tables:
        matching.engine.drop(done)
    return Near(sql=table, tables=(table,))


def _examined(matching: Matching, plan: RulePlan, side: SideName, *, alone: bool) -> Near:
    """Each break's nearest record by one rule: from all pairs at once if they are few, else in
    slices."""
    looked, most = plan.table(f"looked_{side[0]}"), matching.examined_at_once
    pairs = _pairs(matching, plan, side, matching.rest[side])
    table = plan.table(f"near_{side[0]}")
    if matching.engine.table(looked, f"{pairs} LIMIT {most + 1}") > most:
        matching.engine.drop(looked)
        return _in_slices(matching, plan, side, table)
    near = _near(matching, plan, side)
    return near if alone else _materialized(matching, table, near)


def _in_slices(matching: Matching, plan: RulePlan, side: SideName, table: str) -> Near:
    me, engine = side[0], matching.engine
    looked, weighed, part = (plan.table(f"{what}_{me}") for what in ("looked", "weighed", "part"))
    engine.table(weighed, _weighed(matching, plan, side))
    examined = f"before + pairs <= {matching.examined}"
    [(last,)] = engine.rows(f"SELECT MAX(slice) FROM {weighed} WHERE {examined}")
    slices: list[str] = []
    for number in range(0 if last is None else last + 1):
        matching.check_stopped()
        ids = f"SELECT u FROM {weighed} WHERE slice = {number} AND {examined}"
        rows = f"SELECT x.* FROM {matching.rest[side]} AS x JOIN ({ids}) AS w ON w.u = x._id"
        if engine.table(part, rows):
            engine.table(looked, _pairs(matching, plan, side, part))
            slices += _materialized(
                matching, f"{table}_{number}", _near(matching, plan, side)
            ).tables
        engine.drop(part)
        if len(slices) == _MERGED:
            slices = [_merged(matching, f"{table}_to_{number}", slices)]
    skipped = plan.table(f"skipped_{me}")
    count = engine.table(skipped, f"SELECT u AS s FROM {weighed} WHERE NOT ({examined})")
    engine.drop(weighed)
    if not slices:
        engine.table(looked, f"{_pairs(matching, plan, side, matching.rest[side])} LIMIT 0")
        slices += _materialized(matching, table, _near(matching, plan, side)).tables
    nearest = _merged(matching, f"{table}_all", slices)
    return Near(sql=nearest, tables=(nearest, skipped), skipped=skipped if count else None)


def _merged(matching: Matching, table: str, slices: Sequence[str]) -> str:
    matching.engine.table(table, " UNION ALL ".join(f"SELECT * FROM {one}" for one in slices))
    for one in slices:
        matching.engine.drop(one)
    return table


def _weighed(matching: Matching, plan: RulePlan, side: SideName) -> str:
    """Breaks with candidates by a rule: their number, the total of those before them, and their
    slice. A slice has less than twice the pairs that are examined at once."""
    me, it = side[0], _other(side)[0]
    keys = {clause.sides[0 if it == "l" else 1] for clause in plan.keyed}
    names = ", ".join(sorted(key.removeprefix(f"{it}.") for key in keys))
    counts = f"SELECT {names}, COUNT(*) AS pairs FROM {_others(plan, it)} AS q GROUP BY {names}"
    pools = {me: matching.rest[side], it: f"({counts})"}
    pairs = f"SELECT {me}._id AS u, {it}.pairs FROM {pools['l']} AS l JOIN {pools['r']} AS r"
    pairs += f" ON {_same_key(plan)}"
    frame = "ORDER BY pairs, u ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    summed = f"SELECT u, pairs, CAST(SUM(pairs) OVER ({frame}) AS BIGINT) - pairs AS before"
    slice_number = matching.engine.dialect.floor_div("before", matching.examined_at_once)
    return f"SELECT *, {slice_number} AS slice FROM ({summed} FROM ({pairs}) AS p) AS s"


def _same_key(plan: RulePlan) -> str:
    return " AND ".join(clause.sql for clause in plan.keyed)


def _pairs(matching: Matching, plan: RulePlan, side: SideName, pool: str) -> str:
    """Breaks joined with the records of the other side that have their keys, with the failed
    conditions."""
    me, it = side[0], _other(side)[0]
    pools = {me: pool, it: _others(plan, it)}
    miss = "" if plan.sum is None else f" LEFT JOIN {plan.miss} AS w ON {_missed(plan, me)}"
    return (
        f"SELECT {me}._id AS u, {it}._id AS o, {_named(matching, side)}, {_judged(matching, plan)}"
        f" FROM {pools['l']} AS l JOIN {pools['r']} AS r ON {_same_key(plan)}{miss}"
    )


def _near(matching: Matching, plan: RulePlan, side: SideName) -> Near:
    """Each break's nearest record, of the pairs in the table `looked`."""
    me = side[0]
    looked, several, first = (plan.table(f"{what}_{me}") for what in ("looked", "several", "first"))
    theirs = _theirs(matching, side)
    number = f"CAST({plan.number} AS BIGINT)"
    chosen = f"SELECT u, {number} AS n, fails, why, away, days, {', '.join(theirs)}"
    if not matching.engine.table(
        several, f"SELECT u AS s FROM {looked} GROUP BY u HAVING COUNT(*) > 1"
    ):
        return Near(sql=f"({chosen} FROM {looked} AS d)", tables=(looked, several))
    better = [*plan.rank_names, *theirs]
    order = ", ".join(["fails", *(f"{name} NULLS LAST" for name in better), "o"])
    places = f"SELECT d.*, {numbered(order, within='u')} AS place FROM {looked} AS d"
    nearest = f"({places} JOIN {several} ON s = d.u) AS e WHERE place = 1"
    matching.engine.table(first, f"{chosen} FROM {nearest}")
    single = f"{chosen} FROM {looked} AS d WHERE NOT EXISTS (SELECT 1 FROM {several} WHERE s = d.u)"
    return Near(sql=f"({single} UNION ALL SELECT * FROM {first})", tables=(looked, several, first))


def _missed(plan: RulePlan, me: str) -> str:
    """Join of a pair with the sums that were compared and do not agree."""
    if plan.rule.pattern != "M:N":
        return f"w.one = {plan.one}._id"
    keys = [clause.sides[0 if me == "l" else 1] for clause in plan.keyed]
    return " AND ".join(f"w.k{number} = {key}" for number, key in enumerate(keys))


def _others(plan: RulePlan, it: str) -> str:
    """All records of the other side; for grouped sums, the first one with an amount stands for its
    group."""
    if plan.rule.pattern != "M:N":
        return it
    place = 0 if it == "l" else 1
    keys = ", ".join(clause.sides[place] for clause in plan.keyed)
    amount = next(clause.sides[place] for clause in plan.clauses if clause.sums)
    with_amount = f"MIN(CASE WHEN {amount} IS NOT NULL THEN _id END)"
    first = f"SELECT COALESCE({with_amount}, MIN(_id)) AS id FROM {it} GROUP BY {keys}"
    return f"(SELECT {it}.* FROM {it} JOIN ({first}) AS f ON f.id = {it}._id)"


def _judged(matching: Matching, plan: RulePlan) -> str:
    rest = [clause for clause in plan.clauses if clause.category != "key"]
    failing = [f"CASE WHEN {clause.sql} THEN 0 ELSE 1 END" for clause in rest]
    failing += ["CASE WHEN w.parts > 1 THEN 0 ELSE 1 END"] if plan.sum is not None else []
    fails = " + ".join(failing) or "0"
    whys = "".join(
        f" WHEN {clause.sql} IS NOT TRUE THEN {_number(_FAILED[clause.category])}"
        for clause in rest
    )
    if plan.sum is not None:
        whys += f" WHEN w.away IS NOT NULL THEN {_number('sum_mismatch')}"
    last = _number("ambiguous")
    why = f"CASE{whys} ELSE {last} END" if whys else last
    away, days = _away(matching, plan, rest), _days(rest)
    return f"{fails} AS fails, {why} AS why, {away} AS away, {days} AS days{plan.named_ranks}"


def _number(reason: str) -> str:
    return f"CAST({REASONS.index(reason)} AS BIGINT)"


def _away(matching: Matching, plan: RulePlan, rest: Sequence[Clause]) -> str:
    """Right amount minus left amount; of sums, where they were compared."""
    amount = next((clause for clause in plan.clauses if clause.category == "amount"), None)
    if plan.sum is not None:
        amount = next(clause for clause in plan.clauses if clause.sums)
    kind = _away_type(matching)
    if amount is None:
        return f"CAST(NULL AS {kind})"
    apart = f"TRY_CAST({amount.sides[1]} - {amount.sides[0]} AS {kind})"
    if plan.sum is None:
        return apart
    compared = " AND ".join(["w.away IS NOT NULL", *(clause.sql for clause in rest)])
    return f"CASE WHEN {compared} THEN TRY_CAST(w.away AS {kind}) ELSE {apart} END"


def _away_type(matching: Matching) -> str:
    return f"DECIMAL({FULL}, {away_scale(matching)})"


def _days(rest: Sequence[Clause]) -> str:
    window = next((clause for clause in rest if clause.category == "date"), None)
    return (
        f"CAST({window.sides[1]} - {window.sides[0]} AS BIGINT)"
        if window
        else "CAST(NULL AS BIGINT)"
    )


def _other(side: SideName) -> SideName:
    return "right" if side == "left" else "left"


def _theirs(matching: Matching, side: SideName) -> list[str]:
    """Column names of the nearest record's key."""
    return [key.replace("p", "q") for key in matching.carried.side(_other(side)).keys]


def _named(matching: Matching, side: SideName) -> str:
    it = _other(side)[0]
    return ", ".join(f"{it}.{key} AS {name}" for key, name in _key_names(matching, side))


def _key_names(matching: Matching, side: SideName) -> list[tuple[str, str]]:
    return list(zip(matching.carried.side(_other(side)).keys, _theirs(matching, side), strict=True))


def _twin(matching: Matching, side: SideName, repeated: str) -> tuple[str, str]:
    """Whether a record `x` has a matched twin with its primary key, and the joins needed for it."""
    me, keys = side[0], matching.carried.side(side).keys
    taken = " UNION ALL ".join(
        f"SELECT {me} AS id FROM {linked.rows} AS k" for linked in matching.links
    )
    on = " AND ".join(f"d.{key} = x.{key}" for key in keys)
    chosen = ", ".join(f"x.{key}" for key in keys)
    twins = f"twins_{me}"
    matching.engine.table(
        twins,
        (
            f"SELECT DISTINCT {chosen} FROM {me} AS x JOIN ({taken}) AS m"
            f" ON m.id = x._id JOIN {repeated} AS d ON {on}"
        ),
    )
    return (
        "t.p0 IS NOT NULL",
        f" LEFT JOIN {twins} AS t ON {' AND '.join(f't.{key} = x.{key}' for key in keys)}",
    )
