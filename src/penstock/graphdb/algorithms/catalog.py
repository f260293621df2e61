"""All native algorithms by name, and the one way to run one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graphdb.algorithms import (
    centrality,
    community,
    embedding,
    paths,
    ranking,
    similarity,
    structure,
)
from penstock.graphdb.algorithms.errors import AlgorithmNotFound
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.graphdb.algorithms.algorithm import Algorithm, Outcome, Task
    from penstock.graphdb.algorithms.topology import Topology

_ROOMS = (centrality, community, embedding, paths, ranking, similarity, structure)
_ALL: list[Algorithm] = sorted(
    (a for room in _ROOMS for a in room.ALGORITHMS), key=lambda a: a.name
)
CATALOGUE = {a.name: a for a in _ALL}
CATEGORIES = ("centrality", "community", "pathfinding", "similarity", "embedding", "structure")
_LARGEST_WEIGHT = 1e100


def algorithm(name: str) -> Algorithm:
    if name not in CATALOGUE:
        raise AlgorithmNotFound(
            f"There is no algorithm {name[:80]!r}.",
            hint="GET /algo/algorithms lists them.",
            algorithm=name[:80],
        )
    return CATALOGUE[name]


def direction(chosen: Algorithm, wanted: bool | None) -> bool:
    """Whether edges have a direction here; an algorithm that knows one way only says so."""
    if wanted is None or chosen.direction == "either":
        return chosen.directed if wanted is None else wanted
    if wanted != chosen.directed:
        raise InvalidInput(
            f"directed must be {str(chosen.directed).lower()}: {chosen.name} takes graphs as {chosen.direction}.",
            parameter="directed",
        )
    return wanted


def run(chosen: Algorithm, task: Task) -> Outcome:
    _check_weights(chosen, task.graph)
    return chosen.run(task)


def _check_range(graph: Topology) -> None:
    """Products and sums of weights beyond this are wrong, or no finite numbers."""
    numbers = graph.sums.data[graph.sums.data > 0]
    if len(numbers) and (numbers.max() > _LARGEST_WEIGHT or numbers.min() < 1 / _LARGEST_WEIGHT):
        raise InvalidInput(
            f"weight_property: weights must be 0 or between {1 / _LARGEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}.",
            hint="Scale them in the mapping's query.",
            parameter="weight_property",
        )


def _check_weights(chosen: Algorithm, graph: Topology) -> None:
    if not graph.weighted or not graph.sums.nnz:
        return
    least = float((graph.sums if graph.lightest is None else graph.lightest).data.min())
    if least < 0 or (least == 0 and chosen.weights == "positive"):
        bound = "more than 0" if chosen.weights == "positive" else "at least 0"
        raise InvalidInput(
            f"weight_property: {chosen.name} needs weights of {bound}, and there is one of {least:g}.",
            parameter="weight_property",
            range=bound,
        )
    _check_range(graph)
