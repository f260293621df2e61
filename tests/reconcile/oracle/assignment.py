"""Reference assignment of a cluster by exhaustive search: slow, and literally what the guide
says."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

Worth = tuple["int | Decimal", ...]
"""What a choice is judged by, smaller first: minus its pairs, minus its score, then its
differences."""


class Edge(NamedTuple):
    """A candidate: places of its records in the order of keys, its score, and its differences."""

    left: int
    right: int
    score: int
    away: tuple[Decimal, ...]


def clusters(edges: Sequence[Edge]) -> list[list[Edge]]:
    """Candidates that share a record, directly or through others."""
    separate: list[list[Edge]] = []
    for edge in edges:
        touching = [
            cluster for cluster in separate if any(_touch(edge, other) for other in cluster)
        ]
        together = [edge, *(other for cluster in touching for other in cluster)]
        separate = [cluster for cluster in separate if cluster not in touching] + [together]
    return separate


def _touch(one: Edge, other: Edge) -> bool:
    return one.left == other.left or one.right == other.right


def records(cluster: Sequence[Edge]) -> int:
    return len({e.left for e in cluster}) + len({e.right for e in cluster})


def best(cluster: Sequence[Edge]) -> dict[Edge, bool]:
    """As many pairs as there can be, then the highest score, then the least differences, then
    the lowest right record for the first left one, and so on. Each pair with whether a choice
    without it is as good but for that order."""
    worth, chosen = _best(frozenset(cluster))
    return {edge: _best(frozenset(cluster) - {edge})[0] == worth for edge in chosen}


def _best(edges: frozenset[Edge]) -> tuple[Worth, tuple[Edge, ...]]:
    lefts = sorted({e.left for e in edges})
    unmatched = 1 + max((e.right for e in edges), default=0)
    width = 2 + len(next(iter(edges)).away) if edges else 2

    @cache
    def rest(place: int, used: frozenset[int]) -> tuple[Worth, tuple[int, ...], tuple[Edge, ...]]:
        if place == len(lefts):
            return (0,) * width, (), ()
        options = []
        worth, order, chosen = rest(place + 1, used)
        options.append((worth, (unmatched, *order), chosen))
        for edge in edges:
            if edge.left == lefts[place] and edge.right not in used:
                worth, order, chosen = rest(place + 1, used | {edge.right})
                mine = (-1, -edge.score, *edge.away)
                total = tuple(a + b for a, b in zip(mine, worth, strict=True))
                options.append((total, (edge.right, *order), (edge, *chosen)))
        return min(options, key=lambda option: option[:2])

    worth, _, chosen = rest(0, frozenset())
    return worth, chosen


def greedy(cluster: Sequence[Edge]) -> dict[Edge, bool]:
    """Best first, each record once; with whether one of the two had another free candidate
    exactly as good."""
    chosen: dict[Edge, bool] = {}
    lefts: set[int] = set()
    rights: set[int] = set()
    for edge in sorted(cluster, key=lambda e: (-e.score, *e.away, e.left, e.right)):
        if edge.left in lefts or edge.right in rights:
            continue
        chosen[edge] = any(
            other != edge
            and (other.score, other.away) == (edge.score, edge.away)
            and (other.left == edge.left or other.right == edge.right)
            and other.left not in lefts
            and other.right not in rights
            for other in cluster
        )
        lefts.add(edge.left)
        rights.add(edge.right)
    return chosen
