"""Manual decisions in a matching: pairs that are matched before any rule, and pairs that no rule
may match.

`matcher` takes them, from the payload of the job; `runs.items` stores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engines.column_names import inner_type, restored
from penstock.reconcile.errors import BadDecision
from penstock.reconcile.matching.keys import UnreadableKey, check, column
from penstock.reconcile.recipes.model import SIDES

if TYPE_CHECKING:
    from penstock.engines.contract import Engine

MANUAL = "links_manual"
MANUAL_RULE = "manual"
"""The rule name of manual decisions in evidence."""
FORBIDDEN = "forbidden"
Key = Sequence[str]
_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The types of the primary keys of both sides, and the SQL of the key texts of a record `l` or
    `r`."""

    left: Sequence[pa.DataType]
    right: Sequence[pa.DataType]
    left_texts: Sequence[str]
    right_texts: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    match: Sequence[tuple[Key, Key]] = ()
    unmatch: Sequence[tuple[Key, Key]] = ()


def take(engine: Engine, keys: Keys, decided: Decided) -> int:
    """Write the links of manually matched pairs, skipping pairs whose records are missing; returns
    their number."""
    engine.load("decided_match", _table(keys, decided.match))
    return engine.table(
        MANUAL,
        "SELECT MIN(l._id) AS g, MIN(l._id) AS l, MIN(r._id) AS r,"
        " CAST(10000 AS BIGINT) AS s, FALSE AS ambiguous"
        f" FROM decided_match AS d {_joined(keys)} GROUP BY d.n",
    )


def forbid(engine: Engine, keys: Keys, decided: Decided) -> None:
    engine.load("decided_unmatch", _table(keys, decided.unmatch))
    pairs = f"SELECT DISTINCT l._id AS l, r._id AS r FROM decided_unmatch AS d {_joined(keys)}"
    engine.table(FORBIDDEN, pairs)


def allowed(candidates: str) -> str:
    """Candidates without the manually unmatched pairs."""
    return (
        f"SELECT c.* FROM ({candidates}) AS c LEFT JOIN {FORBIDDEN} AS f"
        " ON f.l = c.l AND f.r = c.r WHERE f.l IS NULL"
    )


def allowed_groups(links: str) -> str:
    """Groups that contain no manually unmatched pair."""
    torn = (
        f"SELECT DISTINCT a.g AS torn FROM {links} AS a JOIN {FORBIDDEN} AS f ON f.l = a.l"
        f" JOIN {links} AS b ON b.g = a.g AND b.r = f.r"
    )
    return (
        f"SELECT z.* FROM {links} AS z LEFT JOIN ({torn}) AS t ON t.torn = z.g WHERE t.torn IS NULL"
    )


def _joined(keys: Keys) -> str:
    left = _same("l", keys.left, keys.left_texts)
    return f"JOIN l ON {left} JOIN r ON {_same('r', keys.right, keys.right_texts)}"


def _same(side: str, types: Sequence[pa.DataType], texts: Sequence[str]) -> str:
    """Whether a record has the key of a decision `d`; floats are compared as text."""
    parts = [
        text if pa.types.is_floating(kind) else f"{side}.p{number}"
        for number, (kind, text) in enumerate(zip(types, texts, strict=True))
    ]
    return " AND ".join(f"{part} = d.{side}{number}" for number, part in enumerate(parts))


def _table(keys: Keys, pairs: Sequence[tuple[Key, Key]]) -> pa.Table:
    """One row per pair, with the key types."""
    for pair in pairs:
        _check(keys, pair)
    columns = {"n": pa.array(range(len(pairs)), pa.int64())}
    for place, (side, types) in enumerate((("l", keys.left), ("r", keys.right))):
        for number, kind in enumerate(types):
            values = column([pair[place][number] for pair in pairs], kind)
            columns[f"{side}{number}"] = restored(values, inner_type(values.type))
    return pa.table(columns)


def _check(keys: Keys, pair: tuple[Key, Key]) -> None:
    """Raises for a decision whose key cannot name a record; it would be ignored silently."""
    for name, key, types in zip(SIDES, pair, (keys.left, keys.right), strict=True):
        try:
            if len(key) != len(types):
                counts = f"it has {len(key)} values, but the primary key has {len(types)}"
                raise UnreadableKey(counts)
            for part, kind in zip(key, types, strict=True):
                check(part, kind)
        except UnreadableKey as e:
            shown = [" ".join(part[:_SHOWN] for part in parts) for parts in pair]
            raise BadDecision(
                f"The decision about {shown[0]!r} (left) and {shown[1]!r} (right) has a {name} key"
                f" that cannot be read: {e}.",
                hint="Take it back, and decide again with the key as open_items shows it.",
                side=name,
                left_key=list(pair[0]),
                right_key=list(pair[1]),
            ) from None
