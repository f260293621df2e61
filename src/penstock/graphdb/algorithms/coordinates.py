"""Distance heuristics for A* from node coordinates."""

from __future__ import annotations

from math import asin, cos, hypot, radians, sin, sqrt
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphdb.algorithms.algorithm import Task
    from penstock.graphdb.algorithms.nodes import Floats

_EARTH_METERS = 6_371_008.8


def remaining(task: Task, target: int) -> Callable[[int], float]:
    """An admissible heuristic for A*; it is 0 for a node without coordinates."""
    x, y = _numbers(task, "x_property"), _numbers(task, "y_property")
    distance = _great_circle if task.text("heuristic") == "haversine" else _euclidean

    def guess(node: int) -> float:
        length = distance(float(x[node]), float(y[node]), float(x[target]), float(y[target]))
        return length if length == length else 0.0

    return guess


def _numbers(task: Task, parameter: str) -> Floats:
    name = task.text(parameter)
    if name not in task.properties:
        raise InvalidInput(
            f"{parameter}: no selected label has a property {name!r}.", parameter=parameter
        )
    numbers: Floats = task.properties[name].cast("float64").to_numpy(zero_copy_only=False)
    return numbers


def _euclidean(x: float, y: float, to_x: float, to_y: float) -> float:
    return hypot(to_x - x, to_y - y)


def _great_circle(x: float, y: float, to_x: float, to_y: float) -> float:
    lat, to_lat = radians(y), radians(to_y)
    half = sin((to_lat - lat) / 2) ** 2 + cos(lat) * cos(to_lat) * sin(radians(to_x - x) / 2) ** 2
    return 2 * _EARTH_METERS * asin(sqrt(half))
