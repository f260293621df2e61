"""Renders a drawing as one self-contained HTML file.

The data stand in the page as JSON that no HTML parser can leave early, the browser reads them as
text, and the page's own policy lets no script run but ours, known by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.widget.drawing import Drawing

_STYLE = (
    "html,body{margin:0;height:100%}body{display:flex;flex-direction:column;font:15px/1.4 "
    "system-ui,sans-serif;color:#1c2430;background:#f6f7fa}h1{margin:0;padding:12px "
    "16px;font-size:17px;font-weight:600}main{flex:1;min-height:0}h1+main{padding:0 12px "
    "12px}@media(prefers-color-scheme:dark){body{color:#e6eaf2;background:#0c0f14}}"
)
# `<` ends a script, `&` begins an entity in an attribute, and the last two end a line in old
# JavaScript.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def page(
    drawing: Drawing,
    *,
    title: str,
    colour_by: str | None = None,
    size_by: str | None = None,
) -> str:
    """A whole page of one drawing, with its title above it, if it has one."""
    name = html.escape(title)
    heading = f"<h1>{name}</h1>\n" if title else ""
    drawn = fragment(drawing, height="100%", colour_by=colour_by, size_by=size_by)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name or 'Graph'}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{heading}<main>{drawn}</main>\n{assets()}\n</body>\n</html>\n"
    )


def fragment(
    drawing: Drawing,
    *,
    height: int | str = 480,
    colour_by: str | None = None,
    size_by: str | None = None,
) -> str:
    """One drawing to put into a page that has `assets()` once, after its last fragment; `height` in
    pixels or CSS."""
    tall = f"{height}px" if isinstance(height, int) else html.escape(height)
    data = {"drawing": drawing.as_dict(), "colour_by": colour_by, "size_by": size_by}
    return (
        f'<div class="penstock-graph" style="height:{tall}">'
        f'<script type="application/json">{_json(data)}</script></div>'
    )


def assets() -> str:
    """The script that draws every fragment of a page."""
    return f"<script>{_script()}</script>"


def policy() -> str:
    """The Content-Security-Policy of a page whose only script is `assets()`: nothing may be
    fetched."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src "
        "data: blob:"
    )


@cache
def _script() -> str:
    return files("penstock.widget").joinpath("static/page.js").read_text(encoding="utf-8")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(
        _ESCAPES
    )
