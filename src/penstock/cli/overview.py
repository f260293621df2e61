"""`penstock --help`, that of a group and that of a command, before anything else is loaded.

The first two are written from the list of commands; the last is kept in `helps.json`, see
`tools.helps`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from penstock.cli.commands import COMMANDS, GROUPS

CODES = """\
Exit codes: 0 done · 1 the work failed · 2 invalid call · 3 not found · 4 refused (permissions or
state) · 5 server unreachable or unavailable: try again · 130 interrupted"""


def asked(arguments: list[str]) -> str | None:
    """The overview that these arguments ask for; None when a command must answer."""
    match arguments:
        case [] | ["--help" | "-h"]:
            return _everything()
        case [group] | [group, "--help" | "-h"] if group in GROUPS:
            return _group(group)
        case [*words, "--help" | "-h"]:
            return _kept(" ".join(words))
    return None


def _everything() -> str:
    single = {command.words: command.says for command in COMMANDS if " " not in command.words}
    lines = [
        f"{_bold('Usage')}: penstock COMMAND",
        "",
        "Long data work that must not be lost, doubled or left half done, behind one gate.",
        "",
        _bold("Commands"),
        *_rows(single),
        "",
        _bold("Groups"),
        *_rows(GROUPS),
        "",
        (
            "Every command takes --json (then nothing else is on stdout) and --help; --version "
            "says which this is."
        ),
        (
            "PENSTOCK_URL and PENSTOCK_API_KEY select the server; the default is this machine's "
            "`penstock up`."
        ),
        CODES,
    ]
    return "\n".join(lines)


def _group(group: str) -> str:
    mine = {
        command.words.partition(" ")[2]: command.says
        for command in COMMANDS
        if command.words.startswith(f"{group} ")
    }
    lines = [
        f"{_bold('Usage')}: penstock {group} COMMAND",
        "",
        GROUPS[group],
        "",
        _bold("Commands"),
        *_rows(mine),
    ]
    return "\n".join([*lines, "", f"penstock {group} COMMAND --help says what it takes."])


def _kept(words: str) -> str | None:
    import json

    helps: dict[str, str] = json.loads(
        Path(__file__).with_name("helps.json").read_text(encoding="utf-8")
    )
    return helps.get(words)


def _rows(entries: dict[str, str]) -> list[str]:
    width = max(map(len, entries))
    return [f"  {name:<{width}}  {says}" for name, says in entries.items()]


def _bold(text: str) -> str:
    return (
        f"\033[1m{text}\033[0m" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text
    )
