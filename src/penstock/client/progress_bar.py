"""A progress bar for terminals and notebooks; silent when output is not shown."""

from __future__ import annotations

import html
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def bar(title: str, *, show: bool) -> Iterator[Callable[[float, str], None]]:
    """`draw(percent, step)` moves it."""
    if show and in_notebook():
        yield _in_a_cell(title)
    elif show and sys.stderr.isatty():
        with _in_a_terminal(title) as draw:
            yield draw
    else:
        yield lambda _percent, _step: None


@contextmanager
def _in_a_terminal(title: str) -> Iterator[Callable[[float, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[step]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(_plain(title), total=100.0, step="")
        yield lambda percent, step: progress.update(task, completed=percent, step=_plain(step))


def _in_a_cell(title: str) -> Callable[[float, str], None]:
    """One output that is written over; it needs no widget, so it is there in every front end and in
    exports."""
    notebook = import_module("IPython.display")
    shown = notebook.display(notebook.HTML(_picture(title, 0.0, "")), display_id=True)

    def draw(percent: float, step: str) -> None:
        shown.update(notebook.HTML(_picture(title, percent, step)))

    return draw


def _picture(title: str, percent: float, step: str) -> str:
    return (
        f"<div><span>{html.escape(title)}</span> <progress max='100' "
        f"value='{percent:.0f}'>{percent:.0f} %</progress> <span>{html.escape(step)}</span></div>"
    )


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
