"""Displays a result in a notebook: as a graph if it contains one, otherwise as a table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from penstock.client.progress_bar import in_notebook

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.client.results import QueryResult

HINT = "This can be drawn as a graph: pip install 'penstock[widget]'"
_DRAWN_WHOLE = {"NODE", "REL", "PATH"}


def show(
    result: QueryResult, *, colour_by: str | None, size_by: str | None, caption: str | None
) -> None:
    from rich.console import Console
    from rich.text import Text

    if not in_notebook():
        Console().print(result)
        return
    display: Callable[[object], None] = import_module("IPython.display").display

    if not (result.nodes() or result.edges()):
        display(result)
        return
    try:
        display(result.view(colour_by=colour_by, size_by=size_by, caption=caption))
    except ModuleNotFoundError:
        display(result)
        Console().print(Text(HINT))
        return
    if not _DRAWN_WHOLE.issuperset(result.column_types):
        display(result)
