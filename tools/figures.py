"""Write docs/figures.md and the README's headline figures from the benchmark ledgers.

python -m tools.figures
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- figures: python -m tools.figures -->", "<!-- end of figures -->"


class Figure(TypedDict):
    value: float
    unit: str
    goal: str | None
    ok: bool | None


class Ledger(TypedDict):
    name: str
    commit: str
    figures: dict[str, Figure]


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure of the README: what was measured, and how its value reads."""

    bench: str
    figure: str
    title: str
    reading: str


HEADLINES = (
    Headline(
        "kernel",
        "enqueue_16_producers_speed_vs_best",
        "16 producers of different users enqueue jobs, each in a transaction that is on disk",
        "{value:.1f} times as fast as the fastest of seven other job systems",
    ),
    Headline(
        "abuse",
        "users_p99_times",
        "200 hostile connections of ordinary accounts, for two minutes",
        "normal users' p99 becomes {value:.1f} times what it was; nothing fails or restarts",
    ),
    Headline(
        "exports",
        "memory_50m_rows",
        "A query of 50 million rows becomes Parquet",
        "{value:.0f} MB of memory at most",
    ),
    Headline(
        "reconcile",
        "1m_cpu_vs_bare_duckdb_explained",
        "A million records matched with 0.95 million, every break with its reason",
        "{value:.2f} times the CPU of hand-written DuckDB SQL that writes the same files",
    ),
    Headline(
        "maintenance",
        "large_flat_memory_vs_naive",
        "An Iceberg table of 1.5 GB in 150 files compacted",
        "{value:.0%} of the memory of reading it whole and writing it again",
    ),
)


def ledgers(folder: Path) -> dict[str, Ledger]:
    read: list[Ledger] = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    return {ledger["name"]: ledger for ledger in read}


def headlines(folder: Path) -> str:
    books = ledgers(folder)
    lines = ["| what | measured on two cores |", "|---|---|"]
    for headline in HEADLINES:
        figure = books[headline.bench]["figures"][headline.figure]
        lines.append(f"| {headline.title} | {headline.reading.format(value=figure['value'])} |")
    return "\n".join(lines)


def page(folder: Path) -> str:
    """Every figure that has a goal, and whether it was met."""
    lines = [
        "# Figures",
        "",
        "Written by `python -m tools.figures` from [bench/ledger](../bench/ledger). Each figure "
        "was measured by `make bench NAME=…` on a machine with two cores, ours and the other "
        "systems in one run on the same data; units name the best of the others. Goals that were "
        "missed stay in the table.",
    ]
    for name, ledger in ledgers(folder).items():
        rows = [(key, f) for key, f in ledger["figures"].items() if f["goal"] is not None]
        if not rows:
            continue
        lines += ["", f"## {name}", "", "| figure | measured | goal | |", "|---|---:|---:|---|"]
        for key, figure in rows:
            mark = "met" if figure["ok"] else "**missed**"
            measured = f"{figure['value']:,.4g} {figure['unit']}"
            lines.append(f"| {key.replace('_', ' ')} | {measured} | {figure['goal']} | {mark} |")
    return "\n".join(lines) + "\n"


def with_headlines(readme: str, folder: Path) -> str:
    before, rest = readme.split(BEGIN)
    return f"{before}{BEGIN}\n{headlines(folder)}\n{END}{rest.split(END)[1]}"


def main() -> None:
    folder = ROOT / "bench" / "ledger"
    readme = ROOT / "README.md"
    readme.write_text(with_headlines(readme.read_text(), folder))
    (ROOT / "docs" / "figures.md").write_text(page(folder))


if __name__ == "__main__":
    main()
