"""Pictures that need no script: bars, squares and a timeline, as SVG with a sentence for who cannot
see them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, LABEL, ROW = 960, 220, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    label: str
    value: float
    shown: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time in a row of a timeline."""

    start: float
    end: float
    kind: str
    title: str


def bars(values: Sequence[Bar]) -> str:
    most = max((bar.value for bar in values), default=0) or 1
    room = WIDTH - LABEL - 190
    drawn = []
    for place, bar in enumerate(values):
        width = room * bar.value / most
        drawn.append(
            _text(0, place, bar.label)
            + _rect(LABEL, place, width, bar.kind, f"{bar.label}: {bar.shown}")
        )
        drawn.append(_text(LABEL + width + 8, place, bar.shown, "dim"))
    return svg(
        len(values) * ROW, "".join(drawn), ", ".join(f"{bar.label}: {bar.shown}" for bar in values)
    )


def stack(label: str, parts: Sequence[Bar]) -> str:
    """One bar of parts that make a whole."""
    whole = sum(part.value for part in parts) or 1
    x, drawn = float(LABEL), [_text(0, 0, label)]
    for part in parts:
        width = (WIDTH - LABEL) * part.value / whole
        drawn.append(_rect(x, 0, max(width - 2, 1), part.kind, f"{part.label}: {part.shown}"))
        x += width
    return svg(
        ROW,
        "".join(drawn),
        f"{label}: " + ", ".join(f"{part.label} {part.shown}" for part in parts),
    )


def squares(sizes: Sequence[int], scale: float, kind: str, label: str) -> str:
    """Each file a square whose area is its bytes; `scale` is pixels a square root of a byte."""
    width, gap = 440, 5.0
    x = y = tallest = 0.0
    drawn = []
    for size in sizes:
        side = max(sqrt(size) * scale, 3)
        if x + side > width:
            x, y, tallest = 0.0, y + tallest + gap, 0.0
        drawn.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" '
            'rx="3"/>'
        )
        x, tallest = x + side + gap, max(tallest, side)
    height = round(y + tallest)
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    )


def timeline(rows: Sequence[tuple[str, Sequence[Span]]], marks: Sequence[tuple[float, str]]) -> str:
    """Rows of spans over one time axis, in seconds, with moments that are marked."""
    last = max((span.end for _, spans in rows for span in spans), default=1.0) or 1.0
    left, row, top = 70, 22, 26

    def at(moment: float) -> float:
        return left + (WIDTH - left - 10) * moment / last

    drawn = []
    for place, (label, spans) in enumerate(rows):
        y = top + place * row
        drawn.append(f'<text class="dim" x="0" y="{y + 14}">{escape(label)}</text>')
        drawn += [
            f'<rect class="{span.kind}" x="{at(span.start):.1f}" y="{y + 3}" height="{row - 7}" '
            f'rx="3" width="{max(at(span.end) - at(span.start) - 1, 2):.1f}">'
            f"<title>{escape(span.title)}</title></rect>"
            for span in spans
        ]
    height = top + len(rows) * row
    for moment, text in marks:
        drawn.append(
            f'<rect class="bad" x="{at(moment):.1f}" y="14" width="1.5" height="{height - 14}"/>'
        )
        drawn.append(f'<text x="{at(moment) + 5:.1f}" y="16">{escape(text)}</text>')
    return svg(
        height, "".join(drawn), f"{len(rows)} jobs over {last:.0f} seconds, attempt by attempt"
    )


def svg(height: float, drawn: str, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(label)}">{drawn}</svg>'
    )


def _rect(x: float, place: int, width: float, kind: str, title: str) -> str:
    shape = f'x="{x:.1f}" y="{place * ROW + 5}" width="{width:.1f}" height="{ROW - 11}" rx="3"'
    return f'<rect class="{kind}" {shape}><title>{escape(title)}</title></rect>'


def _text(x: float, place: int, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{place * ROW + 20}">{escape(text)}</text>'
