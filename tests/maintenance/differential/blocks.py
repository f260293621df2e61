"""Generated cases in blocks: a block is a seed and so many examples, and always the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from tests.maintenance.differential.cases import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.maintenance.differential.cases import Case

CASES_A_BLOCK = 10
"""After ten, Hypothesis goes on with mutants of what it had, which are much alike."""


def replay(block: int) -> str:
    return f"make fuzz NAME=maintenance N={CASES_A_BLOCK} SEED={block}"


def run_block(block: int, check: Callable[[Case], None], *, shrink: bool) -> None:
    """Raises of the first case that fails, made smaller first where there is time for it."""

    @seed(block)
    @settings(
        max_examples=CASES_A_BLOCK,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.normal,
    )
    @given(cases())
    def run(case: Case) -> None:
        check(case)

    try:
        run()
    except BaseException as e:
        e.add_note(f"again: {replay(block)}")
        raise
