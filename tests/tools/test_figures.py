"""The README and docs/figures.md say what the ledgers say."""

from __future__ import annotations

from tools.figures import ROOT, page, with_headlines

LEDGERS = ROOT / "bench" / "ledger"


def test_the_readme_has_the_ledgers_headlines() -> None:
    text = (ROOT / "README.md").read_text()
    assert with_headlines(text, LEDGERS) == text, "run: python -m tools.figures"


def test_the_page_of_figures_has_every_goal() -> None:
    assert (ROOT / "docs" / "figures.md").read_text() == page(LEDGERS), (
        "run: python -m tools.figures"
    )
