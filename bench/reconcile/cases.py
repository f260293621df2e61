"""The four patterns, each as a recipe rule and as hand-written SQL.

The SQL writes the same three outputs: matched pairs, and the remaining rows of either side, all in
order. `unique` checks the assumption of its shortcut: it must return nothing, otherwise records
compete and need an assignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

REF = {"left": "ref", "op": "eq", "right": "ref"}
WITHIN = "0.02"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`steps` make tables, the last of them `m` with `left_id` and `right_id`; `l` and `r` are the
    sides."""

    rule: dict[str, Any]
    steps: Sequence[tuple[str, str]]
    unique: Sequence[str]
    order: str = "left_id, right_id"


def _twice(table: str, column: str) -> str:
    return f"SELECT {column} FROM {table} GROUP BY {column} HAVING count(*) > 1"


def _sum(**sides: str) -> dict[str, Any]:
    return {"left": "amount", "op": "sum_within", "right": "amount", "absolute": WITHIN, **sides}


def _parts(one: str, many: str) -> Sequence[tuple[str, str]]:
    """The single record's amount against the sum of the parts that have its reference."""
    sums = f"SELECT ref, sum(amount) AS total FROM {many} GROUP BY ref"
    whole = (
        f"SELECT {one}.id, {one}.ref FROM {one} JOIN ({sums}) AS s ON s.ref = {one}.ref"
        f" WHERE abs({one}.amount - s.total) <= {WITHIN}"
    )
    ids = {one: "w.id", many: f"{many}.id"}
    pairs = (
        f"SELECT {ids['l']} AS left_id, {ids['r']} AS right_id"
        f" FROM w JOIN {many} ON {many}.ref = w.ref"
    )
    return [("w", whole), ("m", pairs)]


def _grouped(side: str, name: str) -> str:
    keys = "customer, currency, date_trunc('month', day)"
    return (
        "SELECT customer, currency, date_trunc('month', day) AS month,"
        f" sum(amount) AS {name}, min(id) AS first"
        f" FROM {side} GROUP BY {keys}"
    )


def _members(side: str) -> str:
    return (
        "SELECT g.first, x.id, row_number() OVER (PARTITION BY g.first ORDER BY x.id) AS n"
        f" FROM g JOIN {side} AS x"
        " ON x.customer = g.customer AND x.currency = g.currency"
        " AND date_trunc('month', x.day) = g.month"
    )


CASES = {
    "one_to_one": Case(
        rule={
            "name": "paid",
            "conditions": [
                REF,
                {"left": "amount", "op": "tolerance", "right": "amount", "absolute": WITHIN},
            ],
        },
        steps=[
            (
                "m",
                "SELECT l.id AS left_id, r.id AS right_id, l.amount AS left_amount,"
                " r.amount AS right_amount"
                f" FROM l JOIN r ON l.ref = r.ref AND abs(l.amount - r.amount) <= {WITHIN}",
            )
        ],
        unique=[_twice("m", "left_id"), _twice("m", "right_id")],
    ),
    "splits": Case(
        rule={"name": "parts", "pattern": "1:N", "conditions": [REF, _sum()]},
        steps=_parts("l", "r"),
        unique=[_twice("l", "ref")],
    ),
    "batches": Case(
        rule={"name": "batch", "pattern": "M:1", "conditions": [REF, _sum()]},
        steps=_parts("r", "l"),
        unique=[_twice("r", "ref")],
    ),
    "groups": Case(
        rule={
            "name": "month",
            "pattern": "M:N",
            "conditions": [
                {"left": "customer", "op": "eq", "right": "customer"},
                {"left": "currency", "op": "eq", "right": "currency"},
                {"left": "day", "op": "normalized", "right": "day", "steps": ["month"]},
                _sum(absolute="0"),
            ],
        },
        steps=[
            (
                "g",
                f"SELECT a.* FROM ({_grouped('l', 'owed')}) AS a"
                f" JOIN ({_grouped('r', 'paid')}) AS b"
                " ON a.customer = b.customer AND a.currency = b.currency"
                " AND a.month = b.month AND a.owed = b.paid",
            ),
            (
                "m",
                "SELECT coalesce(a.first, b.first) AS first, a.id AS left_id, b.id AS right_id"
                f" FROM ({_members('l')}) AS a FULL JOIN ({_members('r')}) AS b"
                " ON a.first = b.first AND a.n = b.n",
            ),
        ],
        unique=[],
        order="first, left_id, right_id",
    ),
}
