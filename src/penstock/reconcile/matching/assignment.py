"""The best one-to-one choice inside a cluster: records that compete for each other, directly or
through others.

As many pairs as there can be; of those choices the highest total score; then the least total
difference in what the rule's first condition about amounts or days compares, then in the next
one's; then the one in which the first left record has the lowest right one, then the second, by the
order of primary keys. So there is exactly one best choice, whatever the order in which candidates
come.

A pair is ambiguous when a choice without it would have been as good but for the order of keys.

The method: shortest augmenting paths with prices on rows (left records) and columns (right ones,
and for each row a column of its own that means "unmatched" and costs more than all pairs together).
Choices of the same cost are then those along tight arcs, where a pair costs just what its row and
its column are priced at, that leave no column with a price free.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FREE = -1
Arcs = list[list[tuple[int, int]]]
"""For each row its columns with what they cost."""


class Candidate(NamedTuple):
    """`a` and `b` are the places of its records by the order of keys; `away` is what they differ
    by, most telling first, `score` is in ten-thousandths."""

    a: int
    b: int
    left: int
    right: int
    score: int
    away: tuple[int, ...]

    @property
    def worth(self) -> tuple[int, ...]:
        """Sort key of a candidate; smaller is better."""
        return (-self.score, *self.away)


def choose(cluster: Sequence[Candidate]) -> Iterator[tuple[Candidate, bool]]:
    """The chosen candidates of one cluster, each with whether it is ambiguous."""
    lefts, rights = sorted({c.a for c in cluster}), sorted({c.b for c in cluster})
    if len(lefts) == 1 or len(rights) == 1:
        best = min(cluster, key=lambda c: (c.worth, c.a, c.b))
        yield best, sum(c.worth == best.worth for c in cluster) > 1
        return
    if len(cluster) == len(lefts) * len(rights) and len({c.worth for c in cluster}) == 1:
        pairs = set(zip(lefts, rights, strict=False))
        yield from ((c, True) for c in cluster if (c.a, c.b) in pairs)
        return
    yield from _assigned(cluster, lefts, rights)


def _assigned(
    cluster: Sequence[Candidate], lefts: Sequence[int], rights: Sequence[int]
) -> Iterator[tuple[Candidate, bool]]:
    row_of, column_of = ({key: place for place, key in enumerate(keys)} for keys in (lefts, rights))
    most = min(len(lefts), len(rights))
    costs = _costs(cluster, most)
    unmatched = most * max(costs) + 1
    arcs: Arcs = [[] for _ in lefts]
    for candidate, cost in zip(cluster, costs, strict=True):
        arcs[row_of[candidate.a]].append((column_of[candidate.b], cost))
    for row, its in enumerate(arcs):
        its.sort()
        its.append((len(rights) + row, unmatched))
    choice = _Choice(arcs, len(rights) + len(lefts))
    choice.put_in_order()
    loose = choice.loose()
    for candidate in cluster:
        column = column_of[candidate.b]
        if choice.column_of[row_of[candidate.a]] == column:
            yield candidate, column in loose


def _costs(cluster: Sequence[Candidate], most: int) -> list[int]:
    """One number per candidate: a sum of `most` of them compares like the tuple of the sums of its
    parts."""
    best = max(candidate.score for candidate in cluster)
    parts = [(best - candidate.score, *candidate.away) for candidate in cluster]
    bases = [most * max(values) + 1 for values in zip(*parts, strict=True)]
    costs = []
    for values in parts:
        cost = 0
        for value, base in zip(values, bases, strict=True):
            cost = cost * base + value
        costs.append(cost)
    return costs


class _Choice:
    """The minimum-cost assignment: the cheapest column for every row, no column twice."""

    def __init__(self, arcs: Arcs, columns: int) -> None:
        self.arcs = arcs
        self.column_of = [_FREE] * len(arcs)
        self.row_of = [_FREE] * columns
        self._row_price = [0] * len(arcs)
        self._column_price = [0] * columns
        for row in range(len(arcs)):
            self._add(row)
        self._tight = [self._tight_columns(row) for row in range(len(arcs))]

    def _tight_columns(self, row: int) -> list[int]:
        """Columns whose cost equals the prices of row and column."""
        price, prices = self._row_price[row], self._column_price
        return [column for column, cost in self.arcs[row] if cost == price + prices[column]]

    def _add(self, row: int) -> None:
        """Assign a column to a row by the cheapest augmenting path."""
        distance: dict[int, int] = {}
        reached_from: dict[int, int] = {}
        done: list[int] = []
        waiting: list[tuple[int, int]] = []
        at, base = row, 0
        prices = self._column_price
        self._row_price[row] = min(cost - prices[column] for column, cost in self.arcs[row])
        while True:
            for column, cost in self.arcs[at]:
                length = base + cost - self._row_price[at] - self._column_price[column]
                if length < distance.get(column, length + 1):
                    distance[column], reached_from[column] = length, at
                    heappush(waiting, (length, column))
            base, column = heappop(waiting)
            while distance[column] < base:
                base, column = heappop(waiting)
            if self.row_of[column] == _FREE:
                break
            done.append(column)
            at = self.row_of[column]
        self._row_price[row] += base
        for passed in done:
            self._row_price[self.row_of[passed]] += base - distance[passed]
            self._column_price[passed] -= base - distance[passed]
        while column != _FREE:
            at = reached_from[column]
            self.row_of[column] = at
            self.column_of[at], column = column, self.column_of[at]

    def put_in_order(self) -> None:
        """Among all assignments of the same cost, take the one whose first row has the lowest
        column, then the second row, and so on."""
        for row, columns in enumerate(self._tight):
            for column in columns:
                if column == self.column_of[row] or self._move(row, column):
                    break

    def _move(self, row: int, column: int) -> bool:
        """Reassign a row to a column at no cost without changing earlier rows; False if that is
        impossible."""
        target = self.column_of[row]
        came_from: dict[int, int] = {}
        waiting = [column] if self._may_leave(column, row) else []
        for at in waiting:
            for after in self._after(at):
                free = after == target or self._may_leave(after, row)
                if free and after != column and after not in came_from:
                    came_from[after] = at
                    waiting.append(after)
        if target not in came_from:
            return False
        self.column_of[row] = column
        at = target
        while at != column:
            at, to = came_from[at], at
            if at != self._slack and self.row_of[at] != _FREE:
                self.column_of[self.row_of[at]] = to
        self.row_of = [_FREE] * self._slack
        for mover, its in enumerate(self.column_of):
            self.row_of[its] = mover
        return True

    def _may_leave(self, column: int, row: int) -> bool:
        """Whether a column is free, or assigned to a later row."""
        return column == self._slack or self.row_of[column] == _FREE or self.row_of[column] > row

    @property
    def _slack(self) -> int:
        """One past the last column. A free column may be taken if a column with price zero is
        freed."""
        return len(self.row_of)

    def _after(self, column: int) -> list[int]:
        """Where a move may go on to when a column is taken from its row, or by the first of all."""
        if column == self._slack:
            priced = enumerate(zip(self.row_of, self._column_price, strict=True))
            return [at for at, (row, price) in priced if row != _FREE and not price]
        row = self.row_of[column]
        return [self._slack] if row == _FREE else [c for c in self._tight[row] if c != column]

    def loose(self) -> set[int]:
        """Columns whose row could have another one at no cost: those on a circle of moves."""
        count = self._slack + 1
        after = [self._after(column) for column in range(count)]
        before: list[list[int]] = [[] for _ in range(count)]
        for column, its in enumerate(after):
            for other in its:
                before[other].append(column)
        loose: set[int] = set()
        seen: set[int] = set()
        for root in reversed(_finished(after)):
            circle = _reached(root, before, seen)
            seen |= circle
            loose |= circle if len(circle) > 1 else set()
        return loose


def _finished(after: list[list[int]]) -> list[int]:
    """Nodes in depth-first finishing order."""
    order: list[int] = []
    seen: set[int] = set()
    for root in range(len(after)):
        path = [(root, iter(after[root]))] if root not in seen else []
        seen.add(root)
        while path:
            following = path[-1][1]
            other = next((n for n in following if n not in seen), None)
            if other is None:
                order.append(path.pop()[0])
            else:
                seen.add(other)
                path.append((other, iter(after[other])))
    return order


def _reached(root: int, arcs: list[list[int]], without: set[int]) -> set[int]:
    if root in without:
        return set()
    reached, waiting = {root}, [root]
    for node in waiting:
        for other in arcs[node]:
            if other not in reached and other not in without:
                reached.add(other)
                waiting.append(other)
    return reached
