"""Random stories, told to PostgreSQL and to a model in plain Python, which must agree after every
sentence.

Two control planes take turns on one database. The clock is moved by a rule; the pace of the
low-water marks and of promotion moves with each claim, so a story is the same whenever it is told.
A failing story is shrunk to its shortest form and printed with what is needed to tell it again.
`PENSTOCK_PROOF=deep` tells many more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from structlog.testing import capture_logs

from penstock.jobs import finish_and_claim as exchange_module
from tests.proof.machine import Kernel
from tests.proof.proof_db import DEPTH, proof_db_on
from tests.proof.telling import Pace, World

if TYPE_CHECKING:
    import pytest


def tell(dsn: str, monkeypatch: pytest.MonkeyPatch, *, stories: int) -> int:
    """Tell so many stories of 50 sentences on a database; returns how many sentences there were."""
    pace = Pace()
    monkeypatch.setattr(exchange_module, "time", pace)
    with asyncio.Runner() as runner, capture_logs():
        standing = proof_db_on(dsn)
        world = World(runner, runner.run(standing.__aenter__()), pace)
        runner.run(world.proof_db.order_without_ties())
        try:
            run_state_machine_as_test(
                type("Kernel", (Kernel,), {"world": world}),
                settings=settings(
                    max_examples=stories,
                    stateful_step_count=50,
                    deadline=None,
                    print_blob=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(standing.__aexit__(None, None, None))
    return world.sentences


def test_the_kernel_does_what_its_model_does(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tell(database, monkeypatch, stories=200 * DEPTH) > 2000 * DEPTH


def test_the_oldest_server_does_what_the_model_does(
    old_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tell(old_database, monkeypatch, stories=10 * DEPTH) > 100 * DEPTH
