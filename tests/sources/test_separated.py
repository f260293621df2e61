"""What the quotes of a CSV look like as they pass, held against a parser."""

from __future__ import annotations

import io
import random

import pytest

from penstock.sources.files.separated import _QuoteWatcher, misread

PIECES = ["a", '"', '""', '"', ",", "\n", "\r\n", '"a"', '"a""b"', '"",', "\ufeff", "\u00e9"]


def watched(data: bytes, sizes: random.Random) -> bool:
    """In pieces of any size; the first has the byte order mark, if there is one, as a whole."""
    stream = _QuoteWatcher(io.BytesIO(data), '"', ",")
    stream.read(3)
    while stream.read(sizes.randrange(1, 5)):
        pass
    return stream.is_suspicious


@pytest.mark.parametrize("seed", range(20))
def test_a_file_without_suspicious_quotes_is_not_misread(seed: int) -> None:
    dice = random.Random(seed)
    clear = 0
    for _ in range(500):
        text = "a,b\n" + "".join(dice.choices(PIECES, k=dice.randrange(8)))
        if not watched(text.encode(), dice):
            clear += 1
            assert misread(io.StringIO(text, newline=""), ",", '"') is None, text
    assert clear > 50


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_well_quoted_file_is_not_parsed_again(mark: str, end: str) -> None:
    rows = ['"i,d","b"', '"1","say ""x"""', '"",""', '"""",y', 'z,"two\nlines"']
    text = mark + "\n".join(rows) + end
    assert not watched(text.encode(), random.Random(1))
    assert misread(io.StringIO(text.removeprefix("\ufeff"), newline=""), ",", '"') is None
