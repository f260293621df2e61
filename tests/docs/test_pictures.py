"""The pictures are those that `python -m tools.screenshot` takes, small enough for a page."""

from __future__ import annotations

from tools.screenshot import PICTURES, TAKEN

from tests.docs.pages import pages

LARGEST = 300_000


def test_every_picture_is_there_and_small() -> None:
    assert {file.name for file in PICTURES.iterdir()} == {picture.name for picture in TAKEN}
    assert max(file.stat().st_size for file in PICTURES.iterdir()) < LARGEST


def test_every_picture_is_shown_somewhere() -> None:
    shown = "\n".join(page.read_text() for page in pages())
    assert [picture.name for picture in TAKEN if f"pictures/{picture.name}" not in shown] == []
