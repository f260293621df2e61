"""How far it still is, as the crow flies."""

from __future__ import annotations

from math import asin, cos, hypot, radians, sin, sqrt
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphdb.algorithms.algorithm import Task
    from penstock.graphdb.algorithms.nodes import Floats

_EARTH_METRES = 6_371_008.8


def remaining(task: Task, target: int) -> Callable[[int], float]:
    """A guess for A*; a node without coordinates guesses nothing, which is never too much."""
    x, y = _numbers(task, "x_property"), _numbers(task, "y_property")
    distance = _globe if task.text("heuristic") == "haversine" else _plane

    def guess(node: int) -> float:
        found = distance(float(x[node]), float(y[node]), float(x[target]), float(y[target]))
        return found if found == found else 0.0

    return guess


def _numbers(task: Task, parameter: str) -> Floats:
    name = task.text(parameter)
    if name not in task.properties:
        raise InvalidInput(
            f"{parameter}: no chosen label has a property {name!r}.", parameter=parameter
        )
    numbers: Floats = task.properties[name].cast("float64").to_numpy(zero_copy_only=False)
    return numbers


def _plane(x: float, y: float, to_x: float, to_y: float) -> float:
    return hypot(to_x - x, to_y - y)


def _globe(x: float, y: float, to_x: float, to_y: float) -> float:
    lat, to_lat = radians(y), radians(to_y)
    half = sin((to_lat - lat) / 2) ** 2 + cos(lat) * cos(to_lat) * sin(radians(to_x - x) / 2) ** 2
    return 2 * _EARTH_METRES * asin(sqrt(half))
