"""Sections and tables; whatever text comes in is escaped here."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Row = tuple[str, ...]
"""Cells that are markup already."""


def section(key: str, title: str, text: str, *parts: str) -> str:
    return (
        f'<section id="{key}"><h2>{escape(title)}</h2>'
        f'<p class="soft">{escape(text)}</p>{"".join(parts)}</section>'
    )


def table(
    heads: Sequence[str],
    rows: Sequence[Row],
    *,
    right: Collection[int] = (),
    sums: Collection[int] = (),
) -> str:
    """`right` are the places of columns of numbers, `sums` those of rows that add others up; the
    last is the total."""
    kinds = [' class="n"' if place in right else "" for place in range(len(heads))]
    head = "".join(
        f'<th scope="col"{kind}>{escape(title)}</th>'
        for title, kind in zip(heads, kinds, strict=True)
    )
    body = "".join(
        f"<tr{_weight(place, sums)}>{''.join(row)}</tr>" for place, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _weight(place: int, sums: Collection[int]) -> str:
    if place not in sums:
        return ""
    return ' class="sum"' if place == max(sums) else ' class="part"'


def cell(text: object) -> str:
    return f"<td>{escape(str(text))}</td>"


def number(text: object) -> str:
    return f'<td class="n">{escape(str(text))}</td>'
