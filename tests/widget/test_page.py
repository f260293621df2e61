"""A page holds what it needs, and what comes from data stays data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from penstock.widget.drawing import Drawing
from penstock.widget.page import assets, fragment, page, policy
from tests.widget.graphs import person, ring

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "]]>\u2028\u2029&lt;",
    "'\"`${alert(1)}",
]


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_adds_no_tag_and_comes_back_whole(text: str) -> None:
    drawing = Drawing.from_elements([person(text, name=text, **{text: text})])
    drawn = fragment(drawing)
    assert Tags(drawn).found == ["div", "script"]
    data = re.fullmatch(
        r'<div [^>]*><script type="application/json">(.*)</script></div>', drawn, re.DOTALL
    )
    assert data is not None
    assert json.loads(data[1])["drawing"]["nodes"][0]["properties"] == {"name": text, text: text}


def test_a_title_is_text() -> None:
    text = page(ring(3), title="<b>&")
    assert "<h1>&lt;b&gt;&amp;</h1>" in text
    assert "<b>" not in text.partition("<script")[0]


def test_a_height_cannot_leave_its_attribute() -> None:
    assert 'height:1px&quot; onclick=&quot;x"' in fragment(ring(3), height='1px" onclick="x')


def test_the_policy_lets_our_script_run_and_nothing_else() -> None:
    script = assets().removeprefix("<script>").removesuffix("</script>")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy()
    assert policy().startswith("default-src 'none';")
    assert policy() in page(ring(3), title="x")
    assert "</script" not in script
    assert "<!--" not in script


def test_several_drawings_share_one_script() -> None:
    text = fragment(ring(3), height=200) + fragment(ring(4), height="50vh") + assets()
    assert Tags(text).found == ["div", "script", "div", "script", "script"]
