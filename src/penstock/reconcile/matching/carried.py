"""Columns of records that links carry, to avoid joining the records again: keys and totalled
amounts.

A record's column `c1` is called `lc1` in a link, for the left side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.reconcile.matching.amounts import width
from penstock.reconcile.recipes.model import SIDES, Pair, SumWithin, Tolerance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.reconcile.matching.clauses import Transpiler
    from penstock.reconcile.recipes.model import Recipe, SideName


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedColumns:
    """Prepared columns of a side: its primary key, the totalled amount and its currency."""

    keys: Sequence[str]
    amount: str | None
    currency: str | None

    @property
    def totals(self) -> Sequence[str]:
        return list(
            dict.fromkeys(name for name in (self.amount, self.currency) if name is not None)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    left: CarriedColumns
    right: CarriedColumns

    def side(self, side: SideName) -> CarriedColumns:
        return self.left if side == "left" else self.right

    @property
    def selected(self) -> Sequence[str]:
        """SELECT columns for candidates over `l` and `r`."""
        return [f"{me}.{name} AS {me}{name}" for me, name in self._all]

    def of(self, links: str) -> str:
        """SELECT columns for a statement that builds links from links."""
        return "".join(f", {links}.{me}{name}" for me, name in self._all)

    @property
    def _all(self) -> Sequence[tuple[str, str]]:
        return [
            (side[0], name)
            for side in SIDES
            for name in (*self.side(side).keys, *self.side(side).totals)
        ]


def carry(recipe: Recipe, transpiler: Transpiler) -> Carried:
    """Prepares the totalled columns too."""
    return Carried(
        left=_carried_columns(recipe, transpiler, "left"),
        right=_carried_columns(recipe, transpiler, "right"),
    )


def _carried_columns(recipe: Recipe, transpiler: Transpiler, side: SideName) -> CarriedColumns:
    prepared = transpiler.side(side)
    amount = currency = None
    if (pair := totalled(recipe)) is not None:
        column = prepared.columns[getattr(pair, side)]
        amount = prepared.named(prepared.number(column.name, width(column, column)))
    if (money := recipe.output.currency) is not None:
        currency = prepared.named(prepared.add(prepared.text(getattr(money, side))))
    keys = [f"p{number}" for number in range(len(getattr(recipe.sources, side).primary_key))]
    return CarriedColumns(keys=keys, amount=amount, currency=currency)


def totalled(recipe: Recipe) -> Pair | None:
    """The amounts to total: those of the recipe's output, else those of its first condition on
    amounts."""
    if recipe.output.amount is not None:
        return recipe.output.amount
    for rule in recipe.rules:
        for condition in rule.conditions:
            if isinstance(condition, Tolerance | SumWithin):
                return Pair(left=condition.left, right=condition.right)
    return None
