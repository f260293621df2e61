"""A storm over a database that loses statements and replies breaks no promise.

The seed of a run is in every message; `PENSTOCK_SEED` replays it.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from penstock.jobs.kinds import Kinds
from penstock.jobs.model import Ending, JobSpec, Succeeded, Verdict
from penstock.jobs.store import PgJobStore
from penstock.kit.errors import DatabaseUnavailable
from tests.proof.fault_run import FaultRun, contradictions
from tests.proof.faults import Fault, Saboteur
from tests.proof.invariants import broken
from tests.proof.proof_db import DEPTH, POLICIES
from tests.proof.tapped import TappedDb

if TYPE_CHECKING:
    from tests.proof.proof_db import ProofDatabase

OPERATIONS = 2500 * DEPTH


async def test_no_lost_statement_and_no_lost_reply_breaks_a_promise(
    proof_db: ProofDatabase,
) -> None:
    seed = int(os.environ.get("PENSTOCK_SEED") or random.SystemRandom().getrandbits(32))
    rng = random.Random(seed)
    saboteur = Saboteur(rng=rng)
    await proof_db.eye.execute(
        "CREATE TABLE penstock.proof_note (note text PRIMARY KEY, job_id bigint, attempt_id uuid)"
    )
    db = TappedDb(proof_db.dsn, saboteur, size=2)
    with capture_logs():
        async with db:
            run_faults = FaultRun(proof_db, PgJobStore(db, Kinds(POLICIES)), saboteur, rng)
            await run_faults.rage(OPERATIONS)
        await run_faults.calm()
    assert await contradictions(proof_db, run_faults.story) == [], f"seed {seed}"
    assert await broken(proof_db.eye) == [], f"seed {seed}"
    assert min(saboteur.done.values()) > OPERATIONS // 50, "the storm was too mild"
    assert run_faults.story.repeats > 0, f"seed {seed}: no reply of a finish was lost"


async def test_the_reply_to_ones_own_finish_may_be_lost_and_the_finish_stands(
    proof_db: ProofDatabase,
) -> None:
    saboteur = Saboteur(rng=random.Random(1), before_rate=0, after_rate=0)
    async with TappedDb(proof_db.dsn, saboteur) as db:
        store = PgJobStore(db, Kinds(POLICIES))
        await proof_db.add(JobSpec(kind="plain"))
        ending = Ending(
            fence=(await proof_db.claim_one()).fence, outcome=Succeeded(result={"rows": 7})
        )
        saboteur.after_rate = 1.0
        lost = 0
        while not saboteur.done[Fault.AFTER]:
            with saboteur.at_work():
                try:
                    await store.finish([ending])
                except DatabaseUnavailable:
                    lost += 1
        saboteur.after_rate = 0.0
        with capture_logs() as logs:
            assert await store.finish([ending]) == [Verdict.REPEATED]
        assert lost == 1
        assert [e for e in logs if e["event"] == "stale_attempt"] == []


async def test_claims_that_were_made_are_returned_when_the_next_queue_cannot_be_asked(
    proof_db: ProofDatabase,
) -> None:
    class Cutter:
        async def before(self, connection: object, name: str) -> None:
            self.exchanges = getattr(self, "exchanges", 0) + (name == "exchange")
            if self.exchanges == 3:
                raise OSError("cut on purpose")

        async def after(self, connection: object, name: str) -> None: ...

    await proof_db.add(JobSpec(kind="once", queue="a"), JobSpec(kind="once", queue="b"))
    async with TappedDb(proof_db.dsn, Cutter()) as db:
        claimed = await PgJobStore(db, Kinds(POLICIES)).claim("w", ["a", "b"], 2)
    assert len(claimed) == 1
