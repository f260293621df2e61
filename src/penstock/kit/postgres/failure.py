"""PostgreSQL's last words, and the system's, turned into one sentence and the thing to do about
it.
"""

from __future__ import annotations

import errno
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import asyncpg

from penstock.kit.postgres.errors import PostgresFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_STILL_IN_USE = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')

_FULL = ("The disk that holds {folder} is full.", "Free some space and start again.")
_DENIED = (
    "The system does not permit us to write to {folder}.",
    "Set PENSTOCK_HOME to a folder of yours.",
)

_SAID = {
    "No space left on device": _FULL,
    "could not create any TCP/IP sockets": (
        "The port that PostgreSQL should listen on is in use.",
        "Choose another one, or none: Penstock itself uses the socket.",
    ),
    "could not look up effective user ID": (
        "PostgreSQL cannot make its files as a user without an entry in /etc/passwd.",
        "Set PENSTOCK_PG_TEMPLATE to an archive that `python -m penstock.kit.postgres template"
        " FILE` wrote elsewhere, or PENSTOCK_DATABASE_URL to a server that runs.",
    ),
}
_RAISED = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
}
_COMPLAINT = re.compile(r"(?:FATAL|PANIC|error): .*")


def is_still_in_use(output: str) -> bool:
    """Whether the server did not start because the one before it, or a backend of it, has not gone
    yet."""
    return any(sign in output for sign in _STILL_IN_USE)


def explain(output: str, folder: Path) -> PostgresFailed:
    for sign, (sentence, hint) in _SAID.items():
        if sign in output:
            return PostgresFailed(sentence.format(folder=folder), hint=hint)
    return PostgresFailed(
        f"PostgreSQL did not start: {_complaint(output)}",
        hint=f"Its log is {folder / 'postgres.log'}.",
    )


def _complaint(output: str) -> str:
    """The last line that complains, else the last line."""
    lines = _COMPLAINT.findall(output) or output.strip().splitlines() or ["it said nothing."]
    return lines[-1]


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """What the system refuses us is said in a sentence too."""
    try:
        yield
    except asyncpg.DiskFullError as e:
        sentence, hint = _FULL
        raise PostgresFailed(sentence.format(folder=folder), hint=hint) from e
    except OSError as e:
        if e.errno not in _RAISED:
            raise
        sentence, hint = _RAISED[e.errno]
        raise PostgresFailed(sentence.format(folder=e.filename or folder), hint=hint) from e
