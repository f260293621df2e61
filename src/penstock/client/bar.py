"""A progress bar, in a terminal or a notebook; nothing where nobody looks."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def bar(title: str, *, show: bool) -> Iterator[Callable[[float, str], None]]:
    """`draw(percent, step)` moves it."""
    if not show or not (sys.stderr.isatty() or _in_notebook()):
        yield lambda _percent, _step: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[step]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=100.0, step="")
        yield lambda percent, step: progress.update(task, completed=percent, step=step)


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
