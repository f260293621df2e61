"""What a command prints, and what it exits with.

With `--json` a command prints one JSON document on stdout and nothing else; people get tables. A mistake gets one
sentence and the next command to try, on stderr.

Exit codes: 0 done · 1 the work failed · 2 the call is wrong · 3 there is no such thing · 4 refused (who you are, or the
state it is in) · 5 nobody answers, try again.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from cyclopts import CycloptsError
from rich.console import Console

from penstock.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cyclopts import App

FAILED, USAGE, MISSING, REFUSED, UNAVAILABLE = 1, 2, 3, 4, 5
_BY_STATUS = {401: REFUSED, 403: REFUSED, 404: MISSING, 409: REFUSED, 413: USAGE, 422: USAGE, 503: UNAVAILABLE}

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def emit(data: Any, *, as_json: bool, render: Callable[[], None]) -> None:
    """The document, or its picture."""
    if as_json:
        json.dump(data, sys.stdout, indent=2, default=str)
        sys.stdout.write("\n")
    else:
        render()


def complain(message: str, hint: str | None = None) -> None:
    err.print(f"[red]✗[/red] {_plain(message)}")
    if hint:
        err.print(f"  [dim]{_plain(hint)}[/dim]")


def guarded(app: App, arguments: list[str]) -> int:
    """Run a command and turn whatever goes wrong into a sentence and an exit code."""
    try:
        code = app(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as e:
        complain(str(e).strip(), "penstock --help")
        return USAGE
    except ClientError as e:
        complain(e.message, e.hint)
        return exit_code(e.status)
    except KeyboardInterrupt:
        return 130
    except Exception as e:
        return _foreign(e)
    return code if isinstance(code, int) else 0


def exit_code(status: int) -> int:
    return _BY_STATUS.get(status, FAILED)


def _foreign(error: Exception) -> int:
    """The server half raises its own tree; it is known by its shape, for importing it here would load the server."""
    details: Mapping[str, Any] = vars(error)
    if "message" in details and "hint" in details:
        complain(details["message"], details["hint"])
        return exit_code(getattr(error, "status", 500))
    raise error


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
