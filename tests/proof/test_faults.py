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
from tests.proof.faults import Fault, Saboteur
from tests.proof.invariants import broken
from tests.proof.stand import DEPTH, POLICIES
from tests.proof.storm import Storm, contradictions
from tests.proof.tapped import TappedDb

if TYPE_CHECKING:
    from tests.proof.stand import Stand

OPERATIONS = 2500 * DEPTH


async def test_no_lost_statement_and_no_lost_reply_breaks_a_promise(stand: Stand) -> None:
    seed = int(os.environ.get("PENSTOCK_SEED") or random.SystemRandom().getrandbits(32))
    rng = random.Random(seed)
    saboteur = Saboteur(rng=rng)
    await stand.eye.execute(
        "CREATE TABLE penstock.proof_note (note text PRIMARY KEY, job_id bigint, attempt_id uuid)"
    )
    db = TappedDb(stand.dsn, saboteur, size=2)
    with capture_logs():
        async with db:
            storm = Storm(stand, PgJobStore(db, Kinds(POLICIES)), saboteur, rng)
            await storm.rage(OPERATIONS)
        await storm.calm()
    assert await contradictions(stand, storm.story) == [], f"seed {seed}"
    assert await broken(stand.eye) == [], f"seed {seed}"
    assert min(saboteur.done.values()) > OPERATIONS // 50, "the storm was too mild"
    assert storm.story.repeats > 0, f"seed {seed}: no reply of a finish was lost"


async def test_the_reply_to_ones_own_finish_may_be_lost_and_the_finish_stands(stand: Stand) -> None:
    saboteur = Saboteur(rng=random.Random(1), before_rate=0, after_rate=0)
    async with TappedDb(stand.dsn, saboteur) as db:
        store = PgJobStore(db, Kinds(POLICIES))
        await stand.add(JobSpec(kind="plain"))
        ending = Ending(
            fence=(await stand.claim_one()).fence, outcome=Succeeded(result={"rows": 7})
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
    stand: Stand,
) -> None:
    class Cutter:
        async def before(self, connection: object, name: str) -> None:
            self.exchanges = getattr(self, "exchanges", 0) + (name == "exchange")
            if self.exchanges == 3:
                raise OSError("cut on purpose")

        async def after(self, connection: object, name: str) -> None: ...

    await stand.add(JobSpec(kind="once", queue="a"), JobSpec(kind="once", queue="b"))
    async with TappedDb(stand.dsn, Cutter()) as db:
        claimed = await PgJobStore(db, Kinds(POLICIES)).claim("w", ["a", "b"], 2)
    assert len(claimed) == 1
