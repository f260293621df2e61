"""What actors do, in a word each, and what is true after any order of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.jobs.model import Ending, Failed, JobSpec, Succeeded
from tests.proof.invariants import broken
from tests.proof.proof_db import DEPTH, LEASE, registration

if TYPE_CHECKING:
    from uuid import UUID

    from penstock.jobs.model import Claimed, Outcome
    from tests.proof.explorer import Order, Script
    from tests.proof.proof_db import ProofDatabase

FEW = 2 if DEPTH == 1 else 4
"""How often a willing actor loses its turn, where there are too many orders for all of them."""
PLAIN = JobSpec(kind="plain")
AFTER = JobSpec(kind="once")
WELL = Succeeded()
BADLY = Failed(error={"code": "BAD"})


def finish(*claimed: Claimed, outcome: Outcome = WELL) -> Script:
    endings = [Ending(fence=c.fence, outcome=outcome) for c in claimed]
    return lambda store, _db: store.finish(endings)


def cancel(job_id: int) -> Script:
    return lambda store, _db: store.cancel(job_id, actor="somebody")


def claim(worker: str, limit: int = 1, *, session: UUID | None = None) -> Script:
    return lambda store, _db: store.claim(worker, ["default"], limit, session=session)


def register(session: UUID) -> Script:
    return lambda store, _db: store.register(registration(session))


def enqueue(*specs: JobSpec) -> Script:
    return lambda store, _db: store.enqueue(specs)


def reap() -> Script:
    return lambda store, _db: store.reap()


async def check(proof_db: ProofDatabase, order: Order) -> None:
    """What holds after any order: no deadlock, no broken invariant, and with a worker alive every
    job ends."""
    assert not order.deadlocks, f"deadlock: {order}"
    assert await broken(proof_db.eye) == [], f"{order}"
    for _ in range(12):
        if not await proof_db.left():
            break
        await proof_db.advance(LEASE + 1)
        await proof_db.store.reap()
        claimed = await proof_db.another_store().claim("last", ["default"], 100)
        await proof_db.store.finish([Ending(fence=c.fence, outcome=WELL) for c in claimed])
    assert await proof_db.left() == 0, f"lost: {order}"
    assert await broken(proof_db.eye) == [], f"{order}"


async def count(proof_db: ProofDatabase, kind: str) -> int:
    number: int = await proof_db.eye.fetchval(
        "SELECT count(*) FROM penstock.job WHERE kind = $1", kind
    )
    return number
