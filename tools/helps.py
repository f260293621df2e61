"""Writes what `penstock COMMAND --help` says: `python -m tools.helps`.

Asking each command itself would load what reads and draws command lines, which takes longer than
people wait for help gladly; a test fails when a command says something else by now.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from penstock.cli.commands import COMMANDS
from penstock.cli.tree import app

FILE = Path(__file__).parents[1] / "src" / "penstock" / "cli" / "helps.json"
WIDTH = 100


def helps() -> str:
    return (
        json.dumps(
            {command.words: _said(command.words) for command in COMMANDS},
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


def _said(words: str) -> str:
    paper = io.StringIO()
    app.help_print(
        words.split(),
        console=Console(file=paper, width=WIDTH, color_system=None, force_terminal=False),
    )
    return "\n".join(line.rstrip() for line in paper.getvalue().strip().splitlines())


def main() -> None:
    FILE.write_text(helps())


if __name__ == "__main__":
    main()
