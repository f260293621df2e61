"""What a benchmark writes down: figures with a goal, and whether each was met."""

from __future__ import annotations

import json
import operator
import statistics
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

LEDGER = Path(__file__).with_name("ledger")
_COMPARE = {">=": operator.ge, "<=": operator.le, "<": operator.lt, ">": operator.gt}


@dataclass(frozen=True, slots=True)
class Figure:
    value: float
    unit: str
    goal: str | None
    ok: bool | None


def figure(value: float, unit: str, goal: str | None = None) -> Figure:
    """`goal` reads like `>= 2.5`; a figure without one is for information."""
    rounded = float(f"{value:.4g}")
    if goal is None:
        return Figure(rounded, unit, None, None)
    sign, bound = goal.split()
    return Figure(rounded, unit, goal, _COMPARE[sign](value, float(bound)))


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def peak_mb() -> float:
    """The most that this process had in memory. What getrusage says begins with its parent's, which made the data."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def publish(name: str, figures: dict[str, Figure]) -> int:
    """Write `ledger/name.json`, print the table; 1 when a goal was missed."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    LEDGER.mkdir(exist_ok=True)
    document = {"name": name, "commit": commit.strip(), "figures": {k: asdict(f) for k, f in figures.items()}}
    (LEDGER / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
    return show(name, figures)


def show(name: str, figures: dict[str, Figure]) -> int:
    """Print the table alone; 1 when a goal was missed."""
    table = Table(title=name, box=None, header_style="bold")
    for heading, side in (("figure", "left"), ("value", "right"), ("unit", "left"), ("goal", "left"), ("", "left")):
        table.add_column(heading, justify=side)
    for key, f in figures.items():
        mark = {True: "[green]ok[/green]", False: "[red]missed[/red]", None: ""}[f.ok]
        table.add_row(key, f"{f.value:,.4g}" if f.value < 1e5 else f"{f.value:,.0f}", f.unit, f.goal or "", mark)
    Console().print(table)
    return 0 if all(f.ok is not False for f in figures.values()) else 1
