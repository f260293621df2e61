"""PostgreSQL's last words, turned into one sentence and the thing to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kit.postgres.errors import PostgresFailed

if TYPE_CHECKING:
    from pathlib import Path

STILL_IN_USE = "pre-existing shared memory block"

_KNOWN = (
    ("No space left on device", "The disk that holds {folder} is full.", "Free some space and start again."),
    (
        "could not create any TCP/IP sockets",
        "The port that PostgreSQL should listen on is in use.",
        "Choose another one, or none: Penstock itself uses the socket.",
    ),
    (
        "could not look up effective user ID",
        "PostgreSQL cannot make its files as a user without an entry in /etc/passwd.",
        "Set PENSTOCK_PG_TEMPLATE to an archive that `python -m penstock.kit.postgres template FILE` wrote elsewhere, "
        "or PENSTOCK_DATABASE_URL to a server that runs.",
    ),
)


def explain(said: str, folder: Path) -> PostgresFailed:
    for sign, sentence, hint in _KNOWN:
        if sign in said:
            return PostgresFailed(sentence.format(folder=folder), hint=hint)
    last = next((line.strip() for line in reversed(said.splitlines()) if _speaks(line)), "it said nothing.")
    return PostgresFailed(f"PostgreSQL did not start: {last}", hint=f"Its log is {folder / 'postgres.log'}.")


def _speaks(line: str) -> bool:
    return any(word in line for word in ("FATAL", "PANIC", "error:", "could not"))
