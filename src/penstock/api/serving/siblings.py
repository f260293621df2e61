"""Metrics aggregation over the processes of one `penstock serve --processes N`.

A scrape reaches one process. It reads the others' metrics over unix sockets and sums counters,
histograms and the gauges of per-process resources. Other gauges describe the database or the
machine, so every process has the full value.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from prometheus_client import CollectorRegistry

log = logging.get(__name__)
VARIABLE = "PENSTOCK_SIBLINGS"
ANSWER_SECONDS = 1.0
_ADDED_TYPES = frozenset({"counter", "histogram", "summary"})
_ADDED_GAUGES = frozenset(
    {
        "graph_olap_database_connections",
        "penstock_nats_held_messages",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """One of `count` processes; `listener` is the descriptor of its socket, `folder` is of all."""

    number: int
    count: int
    listener: int
    folder: str

    def variable(self) -> str:
        return json.dumps(asdict(self))

    def socket(self, number: int) -> Path:
        return Path(self.folder) / f"{number}.metrics"


def myself() -> Sibling | None:
    """This process's number among several; None for a single process."""
    text = os.environ.get(VARIABLE)
    return None if text is None else Sibling(**json.loads(text))


class Siblings:
    def __init__(self, me: Sibling, registry: CollectorRegistry) -> None:
        self._me = me
        self._registry = registry

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Serve this process's metrics to the others."""
        path = self._me.socket(self._me.number)
        path.unlink(missing_ok=True)
        async with await asyncio.start_unix_server(self._answer, path):
            yield

    async def metrics(self) -> bytes:
        own = generate_latest(self._registry)
        others = [n for n in range(self._me.count) if n != self._me.number]
        texts = await asyncio.gather(*(self._ask(number) for number in others))
        return added(own, [text for text in texts if text is not None])

    async def _answer(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(generate_latest(self._registry))
        await writer.drain()
        writer.close()

    async def _ask(self, number: int) -> bytes | None:
        """None while the process restarts, which resets its metrics."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._me.socket(number))
                text = await reader.read()
        except (OSError, TimeoutError) as e:
            log.info("sibling_silent", number=number, error=type(e).__name__)
            return None
        writer.close()
        return text


def added(own: bytes, others: Sequence[bytes]) -> bytes:
    """The metrics of all processes, summed."""
    sums = {family.name: _Sum(family) for family in _families(own)}
    for text in others:
        for family in _families(text):
            if family.name not in sums:
                sums[family.name] = _Sum(family)
            else:
                sums[family.name].add(family)
    return generate_latest(_Shown([family_sum.metric() for family_sum in sums.values()]))


class _Sum:
    def __init__(self, family: Metric) -> None:
        self._family = family
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self._take(family)

    def add(self, family: Metric) -> None:
        if family.type in _ADDED_TYPES or family.name in _ADDED_GAUGES:
            self._take(family)

    def metric(self) -> Metric:
        metric = Metric(self._family.name, self._family.documentation, self._family.type)
        for (name, labels), value in self._values.items():
            metric.add_sample(name, dict(labels), value)
        return metric

    def _take(self, family: Metric) -> None:
        for sample in family.samples:
            key = (sample.name, tuple(sample.labels.items()))
            if sample.name.endswith("_created"):
                self._values.setdefault(key, sample.value)
            else:
                self._values[key] = self._values.get(key, 0.0) + sample.value


class _Shown(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _families(text: bytes) -> Iterable[Metric]:
    families: Iterable[Metric] = text_string_to_metric_families(text.decode())
    return families
