"""The reference pages say what the code says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tools.reference import PAGES, ROOT, WRITERS


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    """In a process of its own: some modules must not be loaded beside others."""
    script = "import json, sys; from tools.reference import pages; json.dump(pages(), sys.stdout)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=ROOT,
        env={**os.environ},
    )
    import json

    pages: dict[str, str] = json.loads(done.stdout)
    return pages


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_a_reference_page_is_what_the_code_writes(written: dict[str, str], name: str) -> None:
    assert (PAGES / name).read_text() == written[name], "run: python -m tools.reference"
