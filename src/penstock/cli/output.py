"""Output and exit codes of commands.

With `--json` a command prints one JSON document on stdout and nothing else; people get tables. A
mistake gets one sentence and the next command to try, on stderr, and so does whatever takes longer
than a second.

Exit codes: 0 done · 1 the work failed · 2 invalid call · 3 not found · 4 refused (permissions or
state) · 5 server unreachable or unavailable: try again · 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Annotated

from cyclopts import CycloptsError, Parameter
from rich.console import Console

from penstock.cli.commands import COMMANDS, GROUPS
from penstock.client.errors import ClientError
from penstock.client.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cyclopts import App

FAILED, USAGE, MISSING, REFUSED, UNAVAILABLE, INTERRUPTED = 1, 2, 3, 4, 5, 130
_BY_STATUS = {
    400: USAGE,
    401: REFUSED,
    403: REFUSED,
    404: MISSING,
    405: USAGE,
    408: UNAVAILABLE,
    409: REFUSED,
    413: USAGE,
    422: USAGE,
    429: UNAVAILABLE,
    503: UNAVAILABLE,
    504: UNAVAILABLE,
}
_HINTS = {
    401: "Set PENSTOCK_API_KEY; an admin makes a key with: penstock key create NAME",
    403: (
        "penstock user list shows the roles; an admin gives another with: penstock user role NAME "
        "ROLE"
    ),
}
PATIENCE = 1.0

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON and nothing else.")]

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def emit(data: object, *, as_json: bool, render: Callable[[], object]) -> None:
    """The document, or its picture."""
    if as_json:
        json.dump(data, sys.stdout, indent=2, default=str)
        sys.stdout.write("\n")
    else:
        render()


def complain(message: str, hint: str | None = None) -> None:
    err.print(f"[red]✗[/red] {plain(message)}")
    if hint:
        err.print(f"  [dim]{plain(hint)}[/dim]")


@contextmanager
def patience(title: str) -> Iterator[None]:
    """Show on a terminal, after one second, that work is in progress."""
    if not err.is_terminal:
        yield
        return
    waiting = err.status(plain(title))
    timer = Timer(PATIENCE, waiting.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        waiting.stop()


def guarded(app: App, arguments: list[str]) -> int:
    """Run a command and turn whatever goes wrong into a sentence and an exit code."""
    try:
        code = app(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as e:
        complain(" ".join(str(e).split()), next_command(arguments))
        return USAGE
    except ClientError as e:
        complain(e.message, e.hint or _HINTS.get(e.status))
        return exit_code(e.status)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _cut_off()
    except Exception as e:
        return _foreign(e)
    return code if isinstance(code, int) else 0


def next_command(arguments: list[str]) -> str:
    """The help that is nearest to what was typed."""
    names = {command.words for command in COMMANDS} | GROUPS.keys()
    for count in (2, 1):
        if (words := " ".join(arguments[:count])) in names:
            return f"penstock {words} --help"
    return "penstock --help"


def exit_code(status: int) -> int:
    return _BY_STATUS.get(status, FAILED)


def _cut_off() -> int:
    """Whoever read has read enough, as `head` does; the rest goes nowhere, and quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _foreign(error: Exception) -> int:
    """The server half raises its own tree; it is known by its shape, for importing it here would
    load the server."""
    details: Mapping[str, object] = vars(error)
    if "message" in details and "hint" in details:
        complain(str(details["message"]), str(details["hint"] or ""))
        return exit_code(getattr(error, "status", 500))
    if (
        isinstance(error, ModuleNotFoundError)
        and (name := error.name)
        and not name.startswith("penstock")
    ):
        complain(
            f"This command needs {name}, which is not installed.", "pip install 'penstock[up]'"
        )
        return USAGE
    raise error


def plain(value: object) -> str:
    """Escape untrusted text for a line with markup: no markup, no terminal control codes."""
    return printable(str(value)).replace("[", r"\[")
