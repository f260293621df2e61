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
from tests.graphs.deployment import CUSTOMER, Deployment, connected
from tests.jobs.conformance import Clock

if TYPE_CHECKING:
    from penstock.jobs.gates import Fired
    from penstock.jobs.model import Claimed
    from penstock.kit.db import Tx

DONE: dict[str, Any] = {"row_count": 1, "size_bytes": 10}


def entities(duck: int, number: int) -> list[dict[str, Any]]:
    return [CUSTOMER | {"entity_name": f"N{n}", "data_source_id": duck} for n in range(number)]


async def claimed(deployment: Deployment, limit: int = 100) -> list[Claimed]:
    return await deployment.services.store.claim("w", ["export"], limit)


async def published(deployment: Deployment) -> list[Claimed]:
    """Publish and clean-up jobs; the sweep of the day waits behind them."""
    claimed = await deployment.services.store.claim("w", ["publish"], 10)
    return [job for job in claimed if job.kind != "sweep"]


async def finish(deployment: Deployment, job: Claimed, result: object = DONE) -> None:
    await deployment.services.store.finish(
        [Ending(fence=job.fence, outcome=Succeeded(result=result))]
    )


def reconciliation(deployment: Deployment) -> ExportResync:
    [loop] = [loop for loop in deployment.services.loops if isinstance(loop, ExportResync)]
    return loop


async def publishes(database: str) -> int:
    async with connected(database) as connection:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM penstock.job WHERE kind = 'publish'"
        )
        return count


async def test_of_many_last_finishers_one_opens_the_publishing(
    deployment: Deployment, duck: int, database: str
) -> None:
    await deployment.snapshot(*entities(duck, 12))
    await asyncio.gather(*(finish(deployment, job) for job in await claimed(deployment)))
    assert await publishes(database) == 1
    await reconciliation(deployment).run_once()
    assert await publishes(database) == 1


async def test_the_snapshot_is_ready_in_the_transaction_that_ends_its_publishing(
    deployment: Deployment, duck: int, database: str
) -> None:
    snapshot_id = await deployment.snapshot(*entities(duck, 2))
    for job in await claimed(deployment):
        await finish(deployment, job)
    snapshot = await deployment.graphs.snapshots.get(snapshot_id)
    assert snapshot.status is SnapshotStatus.CREATING
    [publish] = await published(deployment)
    assert publish.job_id == snapshot.publish_job
    seen = []

    async def watched(tx: Tx, fired: Fired) -> None:
        await deployment.graphs.exports.finalizer(tx, fired)
        async with connected(database) as outside:
            ended = await outside.fetchval(
                "SELECT count(*) FROM penstock.outcome WHERE job_id = $1", publish.job_id
            )
            seen.append((ended, (await deployment.graphs.snapshots.get(snapshot_id)).status))

    deployment.services.store.gates.handle(GATE, watched)
    await finish(
        deployment,
        publish,
        {"node_counts": {"N0": 1, "N1": 1}, "edge_counts": {}, "size_bytes": 20},
    )
    assert seen == [(0, SnapshotStatus.CREATING)], "until the commit nobody sees either"
    ready = await deployment.graphs.snapshots.get(snapshot_id)
    assert (ready.status, ready.node_counts, ready.size_bytes) == (
        SnapshotStatus.READY,
        {"N0": 1, "N1": 1},
        20,
    )
    assert ready.ready_at is not None


async def test_a_publishing_that_fails_is_tried_again_without_exporting_anything_again(
    deployment: Deployment, duck: int, database: str
) -> None:
    snapshot_id = await deployment.snapshot(*entities(duck, 1))
    [job] = await claimed(deployment)
    await finish(deployment, job)
    [publish] = await published(deployment)
    outcome = Failed(error={"code": "STORAGE_REFUSED", "message": "no"})
    await deployment.services.store.finish([Ending(fence=publish.fence, outcome=outcome)])
    snapshot = await deployment.failed(snapshot_id)
    assert (snapshot.failed_step, snapshot.error_message) == ("publish", "no")
    [retried] = await deployment.graphs.exports.retry(snapshot_id)
    assert retried.job_id == job.job_id
    assert await publishes(database) == 2


async def test_what_was_accepted_goes_on_while_the_system_drains(
    deployment: Deployment, duck: int, database: str
) -> None:
    await deployment.snapshot(*entities(duck, 1))
    await deployment.services.store.drain(True, actor="me")
    [job] = await claimed(deployment)
    await finish(deployment, job)
    assert await publishes(database) == 1


async def test_a_job_that_ended_without_a_row_count_fails_its_snapshot(
    deployment: Deployment, duck: int
) -> None:
    for result in (None, {"row_count": None}, {"row_count": "7"}, "done"):
        snapshot_id = await deployment.snapshot(*entities(duck, 1))
        [job] = await claimed(deployment)
        await finish(deployment, job, result)
        assert (
            await deployment.failed(snapshot_id)
        ).error_message == "Node N0: The export ended without a row count."


async def test_cancelling_races_with_the_last_end_and_one_of_them_wins_whole(
    deployment: Deployment, duck: int
) -> None:
    seen = set()
    for _ in range(10):
        snapshot_id = await deployment.snapshot(*entities(duck, 3))
        jobs = await claimed(deployment)
        answers = await asyncio.gather(
            *(finish(deployment, job) for job in jobs),
            deployment.graphs.exports.cancel(snapshot_id, actor="me"),
            return_exceptions=True,
        )
        unexpected = [
            a for a in answers if isinstance(a, BaseException) and not isinstance(a, PenstockError)
        ]
        assert unexpected == []
        snapshot = await deployment.graphs.snapshots.get(snapshot_id)
        assert snapshot.status is SnapshotStatus.CANCELLED, answers
        statuses = {job["status"] for job in await deployment.jobs(snapshot_id)}
        assert statuses <= {"completed", "failed"}
        seen |= statuses
        assert await published(deployment) == []
    assert seen


@pytest.mark.parametrize("moment", ["exports", "publish"])
async def test_a_snapshot_that_no_gate_finalised_is_finalised_by_the_reconciliation(
    deployment: Deployment, duck: int, database: str, moment: str
) -> None:
    async def deaf(tx: Tx, fired: Fired) -> None:
        """A gate that fires and does nothing."""

    snapshot_id = await deployment.snapshot(*entities(duck, 1))
    [job] = await claimed(deployment)
    if moment == "exports":
        deployment.services.store.gates.handle(GATE, deaf)
    await finish(deployment, job)
    async with connected(database) as connection:
        clock = Clock(connection)
        if moment == "exports":
            await clock.advance(6)
            assert (await reconciliation(deployment).run_once()).finalised == 1
        deployment.services.store.gates.handle(GATE, deaf)
        [publish] = await published(deployment)
        await finish(
            deployment, publish, {"node_counts": {"N0": 1}, "edge_counts": {}, "size_bytes": 10}
        )
        await clock.advance(6)
        assert (await reconciliation(deployment).run_once()).finalised == 1
    assert (await deployment.graphs.snapshots.get(snapshot_id)).status is SnapshotStatus.READY
    assert (await reconciliation(deployment).run_once()).total == 0


async def test_a_gate_whose_handler_failed_is_fired_again(
    deployment: Deployment, duck: int, database: str
) -> None:
    async def broken(tx: Tx, fired: Fired) -> None:
        raise RuntimeError("not now")

    await deployment.snapshot(*entities(duck, 1))
    [job] = await claimed(deployment)
    deployment.services.store.gates.handle(GATE, broken)
    await finish(deployment, job)
    assert await publishes(database) == 0
    deployment.services.store.gates.handle(GATE, deployment.graphs.exports.finalizer)
    async with connected(database) as connection:
        await Clock(connection).advance(GATE_PAUSE)
        await reconciliation(deployment).run_once()
    assert await publishes(database) == 1


async def test_claims_of_workers_that_vanished_are_reset_and_counted(
    deployment: Deployment, duck: int, database: str
) -> None:
    await deployment.snapshot(*entities(duck, 3))
    await claimed(deployment, 2)
    assert "graph_olap_export_queue_depth 1.0" in (await deployment.http.get("/metrics")).text
    async with connected(database) as connection:
        await Clock(connection).advance(601)
        await reconciliation(deployment).run_once()
    text = (await deployment.http.get("/metrics")).text
    assert "stale_export_claims_reset_total 2.0" in text
    assert 'background_job_execution_total{job_name="export_reconciliation"' in text
    assert len(await claimed(deployment)) == 3


async def test_time_counts_from_the_submission_and_not_from_the_last_claim(
    deployment: Deployment, duck: int, database: str
) -> None:
    snapshot_id = await deployment.snapshot(*entities(duck, 1))
    [job] = await claimed(deployment)
    longest = deployment.settings.export_max_duration_seconds
    submitted = datetime.now(UTC) - timedelta(seconds=longest - 30)
    state = {
        "query_id": "q",
        "next_uri": "u",
        "poll_count": 1,
        "submitted_at": submitted.isoformat(),
    }
    await deployment.services.store.park([Parking(fence=job.fence, state=state, wake_in=0)])
    [again] = await claimed(deployment)
    assert (await reconciliation(deployment).run_once()).overdue == 0
    async with connected(database) as connection:
        await Clock(connection).advance(60)
        done = await reconciliation(deployment).run_once()
        assert (done.overdue, done.failed) == (1, 1)
    assert "deadline" in ((await deployment.failed(snapshot_id)).error_message or "")
    assert (await deployment.services.store.job(again.job_id)).error["code"] == "DEADLINE_EXCEEDED"
    [cancelling] = await published(deployment)
    assert (cancelling.kind, cancelling.payload["state"]["query_id"]) == ("cancel_query", "q")


async def test_a_parked_job_that_nobody_asks_after_for_long_is_woken(
    deployment: Deployment, duck: int, database: str
) -> None:
    await deployment.snapshot(*entities(duck, 1))
    [job] = await claimed(deployment)
    now = datetime.now(UTC).isoformat()
    state = {"query_id": "q", "next_uri": "u", "poll_count": 1, "submitted_at": now}
    await deployment.services.store.park([Parking(fence=job.fence, state=state, wake_in=80_000)])
    async with connected(database) as connection:
        clock = Clock(connection)
        await clock.advance(1700)
        assert (await reconciliation(deployment).run_once()).woken == 0
        await clock.advance(200)
        assert (await reconciliation(deployment).run_once()).woken == 1
    assert [c.job_id for c in await claimed(deployment)] == [job.job_id]
