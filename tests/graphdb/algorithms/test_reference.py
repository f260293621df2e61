from __future__ import annotations

from tests.graphdb.algorithms.reference import PAGE, rewritten


def test_the_reference_page_matches_the_catalog() -> None:
    page = PAGE.read_text()
    assert rewritten(page) == page, "run python -m tests.graphdb.algorithms.reference"
