"""The examples run as they stand, against a Penstock that was just started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

EXAMPLES = Path(__file__).parents[2] / "examples"
SAYS = {
    "fraud_rings.py": "large transfers as a NetworkX graph",
    "two_ledgers.py": "left: 3 of 4 matched",
    "worn_table.py": "1 file, ",
}


def test_every_example_is_tried() -> None:
    assert {file.name for file in EXAMPLES.glob("*.py")} == SAYS.keys()


@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example_runs_and_says_what_it_promises(running: Cli, name: str) -> None:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PENSTOCK_")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        env={**clean, "PENSTOCK_HOME": str(running.home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
