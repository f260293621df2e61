"""The end of a snapshot: once, in one transaction, whoever races for it; and what is left standing
is brought to it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from penstock.graphs.snapshots.export_resync import ExportResync
from penstock.graphs.snapshots.finalization import GATE
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.jobs.gates import GATE_PAUSE
from penstock.jobs.model import Ending, Failed, Parking, Succeeded
from penstock.kit.errors import PenstockError
from tests.graphs.stand import CUSTOMER, Stand, connected
from tests.jobs.conformance import Clock

if TYPE_CHECKING:
    from penstock.jobs.gates import Fired
    from penstock.jobs.model import Claimed
    from penstock.kit.db import Tx

DONE: dict[str, Any] = {"row_count": 1, "size_bytes": 10}


def entities(duck: int, number: int) -> list[dict[str, Any]]:
    return [CUSTOMER | {"entity_name": f"N{n}", "data_source_id": duck} for n in range(number)]


async def claimed(stand: Stand, limit: int = 100) -> list[Claimed]:
    return await stand.parts.store.claim("w", ["export"], limit)


async def published(stand: Stand) -> list[Claimed]:
    """Publish and clean-up jobs; the sweep of the day waits behind them."""
    claimed = await stand.parts.store.claim("w", ["publish"], 10)
    return [job for job in claimed if job.kind != "sweep"]


async def finish(stand: Stand, job: Claimed, result: object = DONE) -> None:
    await stand.parts.store.finish([Ending(fence=job.fence, outcome=Succeeded(result=result))])


def reconciliation(stand: Stand) -> ExportResync:
    [loop] = [loop for loop in stand.parts.loops if isinstance(loop, ExportResync)]
    return loop


async def publishes(database: str) -> int:
    async with connected(database) as connection:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM penstock.job WHERE kind = 'publish'"
        )
        return count


async def test_of_many_last_finishers_one_opens_the_publishing(
    stand: Stand, duck: int, database: str
) -> None:
    await stand.snapshot(*entities(duck, 12))
    await asyncio.gather(*(finish(stand, job) for job in await claimed(stand)))
    assert await publishes(database) == 1
    await reconciliation(stand).run_once()
    assert await publishes(database) == 1


async def test_the_snapshot_is_ready_in_the_transaction_that_ends_its_publishing(
    stand: Stand, duck: int, database: str
) -> None:
    snapshot_id = await stand.snapshot(*entities(duck, 2))
    for job in await claimed(stand):
        await finish(stand, job)
    snapshot = await stand.graphs.snapshots.get(snapshot_id)
    assert snapshot.status is SnapshotStatus.CREATING
    [publish] = await published(stand)
    assert publish.job_id == snapshot.publish_job
    seen = []

    async def watched(tx: Tx, fired: Fired) -> None:
        await stand.graphs.exports.finalizer(tx, fired)
        async with connected(database) as outside:
            ended = await outside.fetchval(
                "SELECT count(*) FROM penstock.outcome WHERE job_id = $1", publish.job_id
            )
            seen.append((ended, (await stand.graphs.snapshots.get(snapshot_id)).status))

    stand.parts.store.gates.handle(GATE, watched)
    await finish(
        stand, publish, {"node_counts": {"N0": 1, "N1": 1}, "edge_counts": {}, "size_bytes": 20}
    )
    assert seen == [(0, SnapshotStatus.CREATING)], "until the commit nobody sees either"
    ready = await stand.graphs.snapshots.get(snapshot_id)
    assert (ready.status, ready.node_counts, ready.size_bytes) == (
        SnapshotStatus.READY,
        {"N0": 1, "N1": 1},
        20,
    )
    assert ready.ready_at is not None


async def test_a_publishing_that_fails_is_tried_again_without_exporting_anything_again(
    stand: Stand, duck: int, database: str
) -> None:
    snapshot_id = await stand.snapshot(*entities(duck, 1))
    [job] = await claimed(stand)
    await finish(stand, job)
    [publish] = await published(stand)
    outcome = Failed(error={"code": "STORAGE_REFUSED", "message": "no"})
    await stand.parts.store.finish([Ending(fence=publish.fence, outcome=outcome)])
    snapshot = await stand.failed(snapshot_id)
    assert (snapshot.failed_step, snapshot.error_message) == ("publish", "no")
    [retried] = await stand.graphs.exports.retry(snapshot_id)
    assert retried.job_id == job.job_id
    assert await publishes(database) == 2


async def test_what_was_accepted_goes_on_while_the_system_drains(
    stand: Stand, duck: int, database: str
) -> None:
    await stand.snapshot(*entities(duck, 1))
    await stand.parts.store.drain(True, actor="me")
    [job] = await claimed(stand)
    await finish(stand, job)
    assert await publishes(database) == 1


async def test_a_job_that_ended_without_a_row_count_fails_its_snapshot(
    stand: Stand, duck: int
) -> None:
    for result in (None, {"row_count": None}, {"row_count": "7"}, "done"):
        snapshot_id = await stand.snapshot(*entities(duck, 1))
        [job] = await claimed(stand)
        await finish(stand, job, result)
        assert (
            await stand.failed(snapshot_id)
        ).error_message == "Node N0: The export ended without a row count."


async def test_cancelling_races_with_the_last_end_and_one_of_them_wins_whole(
    stand: Stand, duck: int
) -> None:
    seen = set()
    for _ in range(10):
        snapshot_id = await stand.snapshot(*entities(duck, 3))
        jobs = await claimed(stand)
        answers = await asyncio.gather(
            *(finish(stand, job) for job in jobs),
            stand.graphs.exports.cancel(snapshot_id, actor="me"),
            return_exceptions=True,
        )
        unexpected = [
            a for a in answers if isinstance(a, BaseException) and not isinstance(a, PenstockError)
        ]
        assert unexpected == []
        snapshot = await stand.graphs.snapshots.get(snapshot_id)
        assert snapshot.status is SnapshotStatus.CANCELLED, answers
        statuses = {job["status"] for job in await stand.jobs(snapshot_id)}
        assert statuses <= {"completed", "failed"}
        seen |= statuses
        assert await published(stand) == []
    assert seen


@pytest.mark.parametrize("moment", ["exports", "publish"])
async def test_a_snapshot_that_no_gate_finalised_is_finalised_by_the_reconciliation(
    stand: Stand, duck: int, database: str, moment: str
) -> None:
    async def deaf(tx: Tx, fired: Fired) -> None:
        """A gate that fires and does nothing."""

    snapshot_id = await stand.snapshot(*entities(duck, 1))
    [job] = await claimed(stand)
    if moment == "exports":
        stand.parts.store.gates.handle(GATE, deaf)
    await finish(stand, job)
    async with connected(database) as connection:
        clock = Clock(connection)
        if moment == "exports":
            await clock.advance(6)
            assert (await reconciliation(stand).run_once()).finalised == 1
        stand.parts.store.gates.handle(GATE, deaf)
        [publish] = await published(stand)
        await finish(
            stand, publish, {"node_counts": {"N0": 1}, "edge_counts": {}, "size_bytes": 10}
        )
        await clock.advance(6)
        assert (await reconciliation(stand).run_once()).finalised == 1
    assert (await stand.graphs.snapshots.get(snapshot_id)).status is SnapshotStatus.READY
    assert (await reconciliation(stand).run_once()).total == 0


async def test_a_gate_whose_handler_failed_is_fired_again(
    stand: Stand, duck: int, database: str
) -> None:
    async def broken(tx: Tx, fired: Fired) -> None:
        raise RuntimeError("not now")

    await stand.snapshot(*entities(duck, 1))
    [job] = await claimed(stand)
    stand.parts.store.gates.handle(GATE, broken)
    await finish(stand, job)
    assert await publishes(database) == 0
    stand.parts.store.gates.handle(GATE, stand.graphs.exports.finalizer)
    async with connected(database) as connection:
        await Clock(connection).advance(GATE_PAUSE)
        await reconciliation(stand).run_once()
    assert await publishes(database) == 1


async def test_claims_of_workers_that_vanished_are_reset_and_counted(
    stand: Stand, duck: int, database: str
) -> None:
    await stand.snapshot(*entities(duck, 3))
    await claimed(stand, 2)
    assert "graph_olap_export_queue_depth 1.0" in (await stand.http.get("/metrics")).text
    async with connected(database) as connection:
        await Clock(connection).advance(601)
        await reconciliation(stand).run_once()
    text = (await stand.http.get("/metrics")).text
    assert "stale_export_claims_reset_total 2.0" in text
    assert 'background_job_execution_total{job_name="export_reconciliation"' in text
    assert len(await claimed(stand)) == 3


async def test_time_counts_from_the_submission_and_not_from_the_last_claim(
    stand: Stand, duck: int, database: str
) -> None:
    snapshot_id = await stand.snapshot(*entities(duck, 1))
    [job] = await claimed(stand)
    longest = stand.settings.export_max_duration_seconds
    submitted = datetime.now(UTC) - timedelta(seconds=longest - 30)
    state = {
        "query_id": "q",
        "next_uri": "u",
        "poll_count": 1,
        "submitted_at": submitted.isoformat(),
    }
    await stand.parts.store.park([Parking(fence=job.fence, state=state, wake_in=0)])
    [again] = await claimed(stand)
    assert (await reconciliation(stand).run_once()).overdue == 0
    async with connected(database) as connection:
        await Clock(connection).advance(60)
        done = await reconciliation(stand).run_once()
        assert (done.overdue, done.failed) == (1, 1)
    assert "deadline" in ((await stand.failed(snapshot_id)).error_message or "")
    assert (await stand.parts.store.job(again.job_id)).error["code"] == "DEADLINE_EXCEEDED"
    [cancelling] = await published(stand)
    assert (cancelling.kind, cancelling.payload["state"]["query_id"]) == ("cancel_query", "q")


async def test_a_parked_job_that_nobody_asks_after_for_long_is_woken(
    stand: Stand, duck: int, database: str
) -> None:
    await stand.snapshot(*entities(duck, 1))
    [job] = await claimed(stand)
    now = datetime.now(UTC).isoformat()
    state = {"query_id": "q", "next_uri": "u", "poll_count": 1, "submitted_at": now}
    await stand.parts.store.park([Parking(fence=job.fence, state=state, wake_in=80_000)])
    async with connected(database) as connection:
        clock = Clock(connection)
        await clock.advance(1700)
        assert (await reconciliation(stand).run_once()).woken == 0
        await clock.advance(200)
        assert (await reconciliation(stand).run_once()).woken == 1
    assert [c.job_id for c in await claimed(stand)] == [job.job_id]
