"""Decisions of people in a matching: pairs that are taken before any rule, and pairs that no rule may make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from penstock.engines.contract import Engine
    from penstock.reconcile.recipe import Recipe

MANUAL = "links_manual"
FORBIDDEN = "forbidden"
Key = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    match: Sequence[tuple[Key, Key]] = ()
    unmatch: Sequence[tuple[Key, Key]] = ()


def take(engine: Engine, recipe: Recipe, decided: Decided) -> int:
    """The links of pairs that people made; a pair of which one is not there has none. How many there are."""
    engine.load("decided_match", _table(recipe, decided.match))
    return engine.table(
        MANUAL,
        "SELECT MIN(l._id) AS g, MIN(l._id) AS l, MIN(r._id) AS r, CAST(10000 AS BIGINT) AS s, FALSE AS ambiguous"
        f" FROM decided_match AS d {_joined(recipe)} GROUP BY d.n",
    )


def forbid(engine: Engine, recipe: Recipe, decided: Decided) -> None:
    engine.load("decided_unmatch", _table(recipe, decided.unmatch))
    engine.table(FORBIDDEN, f"SELECT DISTINCT l._id AS l, r._id AS r FROM decided_unmatch AS d {_joined(recipe)}")


def allowed(candidates: str) -> str:
    """Candidates without the pairs that people took apart."""
    return (
        f"SELECT c.* FROM ({candidates}) AS c LEFT JOIN {FORBIDDEN} AS f ON f.l = c.l AND f.r = c.r WHERE f.l IS NULL"
    )


def allowed_groups(links: str) -> str:
    """Groups without those that have both records of a pair that people took apart."""
    torn = (
        f"SELECT DISTINCT a.g AS torn FROM {links} AS a JOIN {FORBIDDEN} AS f ON f.l = a.l"
        f" JOIN {links} AS b ON b.g = a.g AND b.r = f.r"
    )
    return f"SELECT z.* FROM {links} AS z LEFT JOIN ({torn}) AS t ON t.torn = z.g WHERE t.torn IS NULL"


def _joined(recipe: Recipe) -> str:
    left, right = (
        " AND ".join(f"CAST({side}.p{n} AS VARCHAR) = d.{side}{n}" for n in range(len(key)))
        for side, key in (("l", recipe.sources.left.primary_key), ("r", recipe.sources.right.primary_key))
    )
    return f"JOIN l ON {left} JOIN r ON {right}"


def _table(recipe: Recipe, pairs: Sequence[tuple[Key, Key]]) -> pa.Table:
    """A row a pair; a key with another number of values names nothing."""
    widths = (len(recipe.sources.left.primary_key), len(recipe.sources.right.primary_key))
    fitting = [pair for pair in pairs if (len(pair[0]), len(pair[1])) == widths]
    columns = {"n": pa.array(range(len(fitting)), pa.int64())}
    for place, side in enumerate(("l", "r")):
        for number in range(widths[place]):
            columns[f"{side}{number}"] = pa.array([pair[place][number] for pair in fitting], pa.string())
    return pa.table(columns)
