"""What a benchmark writes down: figures with a goal, and whether each was met."""

from __future__ import annotations

import json
import operator
import statistics
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

LEDGER = Path(__file__).with_name("ledger")
WIDTH = 130
"""Of the table, so that a log that is no terminal has whole names too."""
_COMPARE = {">=": operator.ge, "<=": operator.le, "<": operator.lt, ">": operator.gt}


@dataclass(frozen=True, slots=True)
class Figure:
    value: float
    unit: str
    goal: str | None
    ok: bool | None
    spread: tuple[float, float] | None = None
    """The least and the most of the rounds, where there were several."""


def figure(
    value: float, unit: str, goal: str | None = None, *, spread: tuple[float, float] | None = None
) -> Figure:
    """`goal` reads like `>= 2.5`; a figure without one is for information."""
    bounds = None if spread is None else (_rounded(spread[0]), _rounded(spread[1]))
    if goal is None:
        return Figure(_rounded(value), unit, None, None, bounds)
    sign, bound = goal.split()
    return Figure(_rounded(value), unit, goal, _COMPARE[sign](value, float(bound)), bounds)


def spread(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def peak_mb() -> float:
    """The most that this process had in memory. What getrusage says begins with its parent's, which
    made the data."""
    status = Path("/proc/self/status").read_text()
    return next(
        int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")
    )


def publish(name: str, figures: dict[str, Figure]) -> int:
    """Write `ledger/name.json`, print the table; 1 when a goal was missed."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout
    LEDGER.mkdir(exist_ok=True)
    document = {
        "name": name,
        "commit": commit.strip(),
        "figures": {k: _entry(f) for k, f in figures.items()},
    }
    (LEDGER / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
    return show(name, figures)


def _entry(f: Figure) -> dict[str, Any]:
    entry = asdict(f)
    if f.spread is None:
        del entry["spread"]
    return entry


def show(name: str, figures: dict[str, Figure]) -> int:
    """Print the table alone; 1 when a goal was missed."""
    table = Table(title=name, box=None, header_style="bold")
    for heading in ("figure", "value", "unit", "spread", "goal", ""):
        table.add_column(heading, justify="right" if heading == "value" else "left", no_wrap=True)
    for key, f in figures.items():
        mark = {True: "[green]ok[/green]", False: "[red]missed[/red]", None: ""}[f.ok]
        bounds = "" if f.spread is None else " - ".join(_text(bound) for bound in f.spread)
        table.add_row(key, _text(f.value), f.unit, bounds, f.goal or "", mark)
    Console(width=max(Console().width, WIDTH)).print(table)
    return 0 if all(f.ok is not False for f in figures.values()) else 1


def _text(value: float) -> str:
    return f"{value:,.4g}" if value < 1e5 else f"{value:,.0f}"
