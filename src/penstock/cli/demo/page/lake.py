"""The page's third section: a table's files before and after."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from penstock.cli.demo.page import charts
from penstock.cli.demo.page.markup import cell, number, section, table

if TYPE_CHECKING:
    from penstock.cli.demo.lake import Kept


def lake_section(result: Kept) -> str:
    before, after = result.before, result.after
    largest = max((*before.sizes, *after.sizes), default=1)
    scale = 130 / sqrt(largest)
    looks = (("Before", before, "ghost"), ("After", after, "accent"))
    drawn = (
        f"<figure style='margin:0'><figcaption>{title}: {_files(look.files)}, {look.kilobytes:,} "
        f"kB</figcaption>{charts.squares(look.sizes, scale, kind, _files(look.files))}</figure>"
        for title, look, kind in looks
    )
    names = (
        ("data files", "files"),
        ("manifests", "manifests"),
        ("kB of data", "kilobytes"),
        ("rows", "rows"),
        ("sum of cents", "total"),
    )
    rows = [
        (cell(title), *(number(f"{getattr(look, name):,}") for look in (before, after)))
        for title, name in names
    ]
    mark = (
        '<p class="ok">✓ The same rows with the same sum.</p>'
        if result.good
        else '<p class="no">✗ Rows differ.</p>'
    )
    return section(
        "lake",
        "A table that small writes wore out",
        f"{before.files} small files became {after.files}. The job held the table's lock; a "
        "worker that had lost it could not have committed. Each square is a file, its area its "
        "bytes.",
        f'<div class="columns">{"".join(drawn)}</div>',
        "<h3>Before and after</h3>",
        table(("", "before", "after"), rows, right=(1, 2)),
        mark,
    )


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"
