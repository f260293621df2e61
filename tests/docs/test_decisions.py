"""The decisions are numbered without gaps, each number once."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT


def test_the_decisions_have_the_numbers_from_one_on() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{n:04}" for n in range(1, len(pages) + 1)]
    for page in pages:
        heading = page.read_text().splitlines()[0]
        assert re.match(rf"# {int(page.name[:4])}\. \S", heading), page.name
