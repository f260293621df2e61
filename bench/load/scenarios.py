"""What clients ask, from 1 to 256 of them at a time, and what each answer costs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from bench.figures import Figure, figure, median, spread
from bench.load.places import settled
from bench.load.wrk import Answered, Request, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bench.load.places import Place

CLIENTS = (1, 16, 64, 256)
ROUNDS = 3
SECONDS = 4.0
LONGER = {256: 3.0}
"""wrk does not count what is under way at its end: it must last much longer than a request."""
WARM_UP_SECONDS = 2.0
CUSTOMERS = 10
QUERY = "MATCH (c:Customer {id: $k}) RETURN c.name AS name"
PAD = "0123456789012345678901234567890123456789"
say = Console(stderr=True, highlight=False, soft_wrap=True).print


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    answered: Answered
    cpu: dict[str, float]
    """Milliseconds a request, by part."""

    @property
    def cpu_ms(self) -> float:
        return sum(self.cpu.values())


Results = dict[tuple[str, int], list[Loaded]]


def queries(place: Place) -> list[Request]:
    bodies = [json.dumps({"query": QUERY, "parameters": {"k": key}}) for key in range(CUSTOMERS)]
    path = f"{place.path}/query"
    return [
        Request(method="POST", path=path, headers=headers, body=body)
        for headers in place.headers
        for body in bodies
    ]


def lists(place: Place) -> list[Request]:
    return [
        Request(method="GET", path="/api/jobs?limit=50", headers=headers)
        for headers in place.headers
    ]


def enqueues(place: Place) -> list[Request]:
    body = json.dumps({"kind": "probe", "payload": {"n": 1, "pad": PAD}})
    return [
        Request(method="POST", path="/api/jobs", headers=headers, body=body)
        for headers in place.headers
    ]


def mixed(place: Place) -> list[Request]:
    """Of 20 requests 12 queries, 5 lists and 3 enqueues."""
    ask, look, add = queries(place), lists(place), enqueues(place)
    pattern = "QQLQQEQQLQQLQEQQLQEL"
    cases = {"Q": ask, "L": look, "E": add}
    return [
        replace(cases[letter][number * 7 % len(cases[letter])])
        for number, letter in enumerate(pattern * len(place.headers))
    ]


SCENARIOS: dict[str, Callable[[Place], list[Request]]] = {
    "query": queries,
    "list": lists,
    "mixed": mixed,
    "enqueue": enqueues,
}


async def measure(
    plane: Place, direct: Place, names: Sequence[str], folder: Path, *, rounds: int, seconds: float
) -> Results:
    """Everything once a round. Queries of the control plane and of the graph server itself take
    turns."""
    cases = [(name, plane, SCENARIOS[name](plane)) for name in names]
    if "query" in names:
        cases.insert(1, ("direct", direct, queries(direct)))
    await settled(plane, direct)
    for _, place, requests in cases:
        await load(
            place.url, requests, clients=16, seconds=min(seconds, WARM_UP_SECONDS), folder=folder
        )
    results: Results = {(name, clients): [] for name, _, _ in cases for clients in CLIENTS}
    for number in range(rounds):
        for clients in CLIENTS:
            for name, place, requests in cases:
                duration = seconds * LONGER.get(clients, 1.0)
                loaded = await _one(place, requests, clients, duration, folder)
                results[name, clients].append(loaded)
                _say(number, name, clients, loaded)
    return results


async def _one(
    place: Place, requests: Sequence[Request], clients: int, seconds: float, folder: Path
) -> Loaded:
    before = place.cpu()
    answered = await load(place.url, requests, clients=clients, seconds=seconds, folder=folder)
    after = place.cpu()
    count = max(1, answered.requests)
    return Loaded(
        answered=answered, cpu={name: (after[name] - before[name]) / count * 1e3 for name in before}
    )


def _say(number: int, name: str, clients: int, loaded: Loaded) -> None:
    answered = loaded.answered
    parts = ", ".join(f"{part} {ms:.2f}" for part, ms in loaded.cpu.items())
    say(
        f"{number + 1} {name} {clients}: {answered.per_second:,.0f} r/s,"
        f" p50 {answered.p50 * 1e3:.2f} ms, p99 {answered.p99 * 1e3:.2f} ms,"
        f" {answered.errors} errors, CPU ms a request: {parts}"
    )


def figures(results: Results) -> dict[str, Figure]:
    all_figures: dict[str, Figure] = {}
    for (name, clients), loads in results.items():
        all_figures |= _of_one(f"{name}_{clients}", loads)
        all_figures[f"{name}_{clients}_errors"] = figure(
            sum(load.answered.errors for load in loads), "requests", "<= 0"
        )
    if ("direct", 1) in results:
        all_figures |= _added(results)
    return all_figures


def _of_one(name: str, loads: Sequence[Loaded]) -> dict[str, Figure]:
    goals = {"list_16_per_second": ">= 1500", "query_256_p99": "< 2000"}
    values = {
        "per_second": ("r/s", [load.answered.per_second for load in loads]),
        "p50": ("ms", [load.answered.p50 * 1e3 for load in loads]),
        "p99": ("ms", [load.answered.p99 * 1e3 for load in loads]),
        "cpu": ("ms a request", [load.cpu_ms for load in loads]),
    }
    for part in loads[0].cpu if len(loads[0].cpu) > 1 else ():
        values[f"cpu_of_{part}"] = ("ms a request", [load.cpu[part] for load in loads])
    return {
        f"{name}_{quantity}": figure(
            median(numbers), unit, goals.get(f"{name}_{quantity}"), spread=spread(numbers)
        )
        for quantity, (unit, numbers) in values.items()
    }


def _added(results: Results) -> dict[str, Figure]:
    """By the control plane and PostgreSQL to the graph server's own answer: time of one client, CPU
    of 16."""
    pairs = {n: list(zip(results["query", n], results["direct", n], strict=True)) for n in CLIENTS}
    waited = [(ours.answered.p50 - own.answered.p50) * 1e3 for ours, own in pairs[1]]
    spent = {n: [ours.cpu_ms - own.cpu_ms for ours, own in pairs[n]] for n in (1, 16)}
    return {
        "query_added_p50": figure(median(waited), "ms", "<= 1.5", spread=spread(waited)),
        "query_added_cpu": figure(median(spent[16]), "ms", "<= 1.5", spread=spread(spent[16])),
        "query_added_cpu_alone": figure(median(spent[1]), "ms", spread=spread(spent[1])),
    }
