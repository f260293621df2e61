"""The README says what the ledgers say."""

from __future__ import annotations

from tools.figures import ROOT, rewritten


def test_the_readme_has_the_ledgers_figures() -> None:
    text = (ROOT / "README.md").read_text()
    assert rewritten(text, ROOT / "bench" / "ledger") == text, "run: python -m tools.figures"
