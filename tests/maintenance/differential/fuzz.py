"""The generated cases at length: blocks from a seed on, each failure made smaller and printed."""

from __future__ import annotations

import tempfile
import traceback
import warnings
from pathlib import Path

from rich.console import Console

from penstock.kit import logging
from tests.maintenance.differential.blocks import CASES_A_BLOCK, replay, run_block
from tests.maintenance.differential.check import Tally, check
from tests.maintenance.differential.readers import engines


def run(cases: int, seed: int) -> int:
    console = Console(soft_wrap=True, markup=False, highlight=False)
    logging.configure(level="CRITICAL", form="text")
    warnings.simplefilter("ignore")
    blocks = range(seed, seed + max(1, round(cases / CASES_A_BLOCK)))
    console.print(
        f"{len(blocks)} blocks of {CASES_A_BLOCK} cases, seeds {blocks[0]} to {blocks[-1]}"
    )
    failures, tally = 0, Tally()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-fuzz-") as name,
        engines(Path(name)) as readers,
    ):
        scratch = Path(name) / "scratch"
        scratch.mkdir()
        for block in blocks:
            try:
                run_block(block, lambda case: check(case, readers, scratch, tally), shrink=True)
            except Exception as e:
                failures += 1
                console.print("".join(traceback.format_exception(e, limit=-4)))
            else:
                console.print(f"block {block}: nothing found")
    tally.show(console)
    console.print(f"{failures} of {len(blocks)} blocks failed; replay one with {replay(blocks[0])}")
    return failures
