"""The list of slow test files is one that a newcomer can trust."""

from __future__ import annotations

from tools.figures import ROOT

from tests.conftest import LONGEST, SLOW


def test_every_slow_file_exists() -> None:
    assert sorted(name for name in SLOW if not (ROOT / name).is_file()) == []


def test_the_longest_files_are_slow() -> None:
    assert sorted(set(LONGEST) - SLOW) == []
