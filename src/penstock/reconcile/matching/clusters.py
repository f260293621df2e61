"""Assignment in a 1:1 rule where records compete, in memory that does not grow with the candidates.

Candidates that share a record, directly or through others, form a cluster. A cluster of up to
`MatchLimits.exact_cluster` records is solved exactly, by `assignment`; a larger one greedily: the
best candidate first, each record once. A small number of candidates is read at once and clustered
here. Otherwise the engine labels the clusters, and they are read one by one; greedy candidates are
read best first, with one byte of memory per record.

The engine finds clusters by contraction: in each round every vertex takes as its name the least of
a random renumbering of itself and its neighbors, so a constant share of the vertices is expected to
go, whatever the shape of clusters.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.reconcile.matching import assignment
from penstock.reconcile.matching.amounts import unscaled
from penstock.reconcile.matching.assignment import Candidate
from penstock.reconcile.matching.link_files import LINKS, Link, RowFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from decimal import Decimal

    from penstock.engines.contract import Engine
    from penstock.reconcile.matching.rules import RulePlan

    CandidateRow: TypeAlias = tuple[int, int, int, int, int, *tuple[int | Decimal, ...]]
    """The fields of a `Candidate`, with what its records differ by not yet as integers."""

_PRIME = 2**31 - 1
"""More than twice the records of a side, and small enough for its square to be a BIGINT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """The number of clusters of a rule that were too large to be solved exactly, and of their
    records."""

    clusters: int = 0
    records: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """`exact` is the largest cluster that is solved exactly, `at_once` the most candidates read at
    once."""

    engine: Engine
    plan: RulePlan
    exact: int
    at_once: int
    watch: Callable[[], None]

    def run(self) -> Greedy:
        """Write the chosen candidates to the rule's table `chosen`."""
        plan, engine = self.plan, self.engine
        disputed = engine.table(plan.table("disputed"), plan.disputed())
        for side in ("l", "r"):
            engine.table(plan.table(f"order{side}"), plan.ordered(side))
        if disputed <= self.at_once:
            return self._in_memory()
        return self._by_engine()

    def _in_memory(self) -> Greedy:
        all_clusters = clusters(list(self._candidates(self.plan.competing())))
        large = [cluster for cluster in all_clusters if _records(cluster) > self.exact]
        small = [cluster for cluster in all_clusters if _records(cluster) <= self.exact]
        links = [*map(_exact, small), *(greedy_links(_best_first(cluster)) for cluster in large)]
        self._keep(self.plan.table("chosen"), links)
        return Greedy(clusters=len(large), records=sum(map(_records, large)))

    def _by_engine(self) -> Greedy:
        plan, engine = self.plan, self.engine
        engine.table(plan.table("competing"), plan.competing())
        labels, large, exact = self._label(), plan.table("large"), plan.table("exact")
        count = engine.table(
            large,
            f"SELECT c, COUNT(*) AS n FROM {labels} GROUP BY c HAVING COUNT(*) > {self.exact}",
        )
        self._keep(exact, self._exact_clusters(labels, large))
        links = f"SELECT * FROM {exact}"
        if count:
            links += f" UNION ALL {plan.flagged(self._greedy(labels, large))}"
        engine.table(plan.table("chosen"), links)
        [(records,)] = engine.rows(f"SELECT COALESCE(SUM(n), 0) FROM {large}")
        return Greedy(clusters=count, records=int(records))

    def _exact_clusters(self, labels: str, large: str) -> Iterator[Iterator[Link]]:
        sql = (
            f"SELECT c.*, m.c AS cluster FROM {self.plan.table('competing')} AS c"
            f" JOIN {labels} AS m ON m.v = 2 * c.a"
            f" LEFT JOIN {large} AS g ON g.c = m.c WHERE g.c IS NULL ORDER BY m.c"
        )
        for _, rows in groupby(self._rows(sql), key=lambda row: row[-1]):
            yield _exact([self._candidate(row[:-1]) for row in rows])

    def _greedy(self, labels: str, large: str) -> str:
        """The table of the links of large clusters in the order in which they were chosen, not yet
        flagged."""
        plan = self.plan
        best = ", ".join(["c.s DESC", *(f"c.{name}" for name in plan.rank_names), "c.a", "c.b"])
        sql = (
            f"SELECT c.* FROM {plan.table('competing')} AS c JOIN {labels} AS m ON m.v = 2 * c.a"
            f" JOIN {large} AS g ON g.c = m.c ORDER BY {best}"
        )
        taken = enumerate(_taken(self._rows(sql), self._count("orderl"), self._count("orderr")))
        self._keep(
            plan.table("taken"),
            ([Link(place, left, right, score, False)] for place, (left, right, score) in taken),
        )
        return plan.table("taken")

    def _count(self, table: str) -> int:
        [(count,)] = self.engine.rows(f"SELECT COUNT(*) FROM {self.plan.table(table)}")
        return int(count)

    def _label(self) -> str:
        """The table `(v, c)` of the cluster of each vertex: `2 * a` is a left record, `2 * b +
        1` a right one."""
        engine, table = self.engine, self.plan.table
        edges, labels, number = table("edges"), table("labels"), 0
        pairs = f"SELECT 2 * a AS x, 2 * b + 1 AS y FROM {table('competing')}"
        left = engine.table(f"{edges}_0", pairs)
        vertices = f"SELECT x AS v FROM {edges}_0 UNION SELECT y FROM {edges}_0"
        engine.table(f"{labels}_0", f"SELECT v, v AS c FROM ({vertices}) AS q")
        chance = random.Random(0)  # noqa: S311 - any numbers serve, and the same ones always
        while left:
            self.watch()
            times, plus = chance.randrange(1, _PRIME), chance.randrange(_PRIME)
            left = self._contract((edges, labels), number, times, plus)
            number += 1
        engine.drop(f"{edges}_{number}")
        engine.table(labels, f"SELECT * FROM {labels}_{number}")
        engine.drop(f"{labels}_{number}")
        return labels

    def _contract(self, tables: tuple[str, str], number: int, times: int, plus: int) -> int:
        """One round; returns the number of remaining edges between different vertices."""
        engine, names = self.engine, self.plan.table("names")
        (edges, labels), (next_edges, next_labels) = (
            [f"{table}_{n}" for table in tables] for n in (number, number + 1)
        )

        def mixed(vertex: str) -> str:
            return f"(({vertex} * {times} + {plus}) % {_PRIME})"

        ends = (("x", "y"), ("y", "x"))
        either = [f"SELECT {one} AS v, {mixed(other)} AS w FROM {edges}" for one, other in ends]
        both = " UNION ALL ".join(either)
        least = f"LEAST(MIN(w), {mixed('v')})"
        engine.table(names, f"SELECT v, {least} AS name FROM ({both}) AS q GROUP BY v")
        joined = f"JOIN {names} AS p ON p.v = e.x JOIN {names} AS q ON q.v = e.y"
        apart = f"{edges} AS e {joined} WHERE p.name <> q.name"
        left = engine.table(next_edges, f"SELECT DISTINCT p.name AS x, q.name AS y FROM {apart}")
        name = f"COALESCE(p.name, {mixed('m.c')})"
        joined = f"{labels} AS m LEFT JOIN {names} AS p ON p.v = m.c"
        engine.table(next_labels, f"SELECT m.v, {name} AS c FROM {joined}")
        for done in (edges, labels, names):
            engine.drop(done)
        return left

    def _keep(self, table: str, clusters_of_links: Iterable[Iterable[Link]]) -> None:
        with RowFile(self.engine, table, LINKS) as file:
            for links in clusters_of_links:
                for link in links:
                    file.add(link)

    def _candidates(self, sql: str) -> Iterator[Candidate]:
        return (self._candidate(row) for row in self._rows(sql))

    def _candidate(self, row: CandidateRow) -> Candidate:
        a, b, left, right, score, *ranks = row
        away = tuple(map(_whole, ranks, self.plan.rank_scales))
        return Candidate(a, b, left, right, score, away)

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        for batch in self.engine.stream(sql):
            self.watch()
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def clusters(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Groups of candidates that share records."""
    parent: dict[int, int] = {}

    def root(vertex: int) -> int:
        while (above := parent.setdefault(vertex, vertex)) != vertex:
            parent[vertex] = vertex = parent[above]
        return vertex

    for candidate in candidates:
        parent[root(2 * candidate.a)] = root(2 * candidate.b + 1)
    by_root: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        by_root.setdefault(root(2 * candidate.a), []).append(candidate)
    return list(by_root.values())


def _records(cluster: Sequence[Candidate]) -> int:
    return len({c.a for c in cluster}) + len({c.b for c in cluster})


def _exact(cluster: Sequence[Candidate]) -> Iterator[Link]:
    for candidate, ambiguous in assignment.choose(cluster):
        yield Link(candidate.left, candidate.left, candidate.right, candidate.score, ambiguous)


def _best_first(cluster: Iterable[Candidate]) -> list[Candidate]:
    return sorted(cluster, key=lambda c: (c.worth, c.a, c.b))


def _whole(away: int | Decimal, scale: int) -> int:
    """A difference as an integer: days, or the smallest unit of an amount."""
    return away if isinstance(away, int) else unscaled(away, scale)


def _taken(
    rows: Iterable[CandidateRow],
    lefts: int,
    rights: int,
) -> Iterator[tuple[int, int, int]]:
    """The first candidate of each record as `(left, right, score)`, in order of preference; record
    positions count from 1."""
    left_taken, right_taken = bytearray(lefts + 1), bytearray(rights + 1)
    for a, b, left, right, score, *_ in rows:
        if not (left_taken[a] or right_taken[b]):
            left_taken[a] = right_taken[b] = 1
            yield left, right, score


def greedy_links(candidates: Sequence[Candidate]) -> Iterator[Link]:
    """Solve a large cluster greedily, from its candidates with the best first.

    A pair is ambiguous when one of its two records could have had another partner, still free, that
    was exactly as good.
    """
    lefts: set[int] = set()
    rights: set[int] = set()
    for _, equals in groupby(candidates, key=lambda c: c.worth):
        free = [c for c in equals if c.a not in lefts and c.b not in rights]
        of_left: dict[int, list[int]] = {}
        of_right: dict[int, list[int]] = {}
        for candidate in free:
            of_left.setdefault(candidate.a, []).append(candidate.b)
            of_right.setdefault(candidate.b, []).append(candidate.a)
        for candidate in free:
            if candidate.a in lefts or candidate.b in rights:
                continue
            lefts.add(candidate.a)
            rights.add(candidate.b)
            ambiguous = any(b not in rights for b in of_left[candidate.a]) or any(
                a not in lefts for a in of_right[candidate.b]
            )
            yield Link(candidate.left, candidate.left, candidate.right, candidate.score, ambiguous)
