"""Tables for people: bold headings, no frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Collection


def table(*headings: str, right: Collection[str] = (), title: str | None = None) -> Table:
    """A table without rows; the columns in `right` are of numbers."""
    drawn = Table(
        title=title, box=None, header_style="bold", title_justify="left", pad_edge=title is not None
    )
    for heading in headings:
        drawn.add_column(heading, justify="right" if heading in right else "left")
    return drawn
