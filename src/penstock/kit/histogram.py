"""A Prometheus histogram for one writing thread, filled with many values at a time."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client import Metric


class BatchHistogram(Collector):
    """Every job passes here; the library's own histogram takes a lock twice for each value."""

    def __init__(self, name: str, documentation: str, label: str, buckets: Sequence[float]) -> None:
        self._name = name
        self._documentation = documentation
        self._label = label
        self._bounds = [float(bound) for bound in buckets]
        self._names = [*map(str, self._bounds), "+Inf"]
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, value: str, numbers: Iterable[float]) -> None:
        """`value` is the label's."""
        counts = self._counts.get(value)
        if counts is None:
            counts = self._counts[value] = [0] * len(self._names)
            self._sums[value] = 0.0
        total, bounds = 0.0, self._bounds
        for number in numbers:
            counts[bisect_left(bounds, number)] += 1
            total += number
        self._sums[value] += total

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._documentation, labels=[self._label])
        for value, counts in list(self._counts.items()):
            buckets = list(zip(self._names, accumulate(counts), strict=True))
            family.add_metric([value], buckets, sum_value=self._sums[value])
        yield family
