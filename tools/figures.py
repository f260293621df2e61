"""Writes the README's table of figures from the benchmark ledgers: `python -m tools.figures`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- figures: python -m tools.figures -->", "<!-- end of figures -->"


def table(ledgers: Path) -> str:
    """Every figure that has a goal, and whether it was met."""
    lines = ["| bench | figure | measured | goal | |", "|---|---|---:|---:|---|"]
    for file in sorted(ledgers.glob("*.json")):
        ledger: dict[str, Any] = json.loads(file.read_text())
        for name, found in ledger["figures"].items():
            if found["goal"] is not None:
                mark = "✓" if found["ok"] else "missed"
                value = f"{found['value']:,.4g} {found['unit']}"
                lines.append(f"| {ledger['name']} | {name.replace('_', ' ')} | {value} | {found['goal']} | {mark} |")
    return "\n".join(lines)


def rewritten(text: str, ledgers: Path) -> str:
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table(ledgers)}\n{END}{rest.split(END)[1]}"


def main() -> None:
    readme = ROOT / "README.md"
    readme.write_text(rewritten(readme.read_text(), ROOT / "bench" / "ledger"))


if __name__ == "__main__":
    main()
