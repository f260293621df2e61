"""Rows and processes that do not agree, and what is done about it; the states of an instance."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from penstock.graphs.errors import InvalidStateTransition
from penstock.graphs.instances.model import InstanceStatus, check_step
from penstock.graphs.instances.resource_monitor import ResourceMonitor
from penstock.graphs.instances.resync import Compared, InstanceResync
from penstock.launchers.contract import Handle, LaunchRequest
from penstock.operations.lifecycle import Lifecycle
from tests.graphs.deployment import until
from tests.graphs.fleet import connected, sailing, sink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.kit.loop import Loop
    from tests.graphs.fleet import Fleet

STEPS = {
    "waiting_for_snapshot": {"starting", "failed", "stopping"},
    "starting": {"running", "failed", "stopping"},
    "running": {"stopping", "failed", "suspended"},
    "suspended": {"resuming", "stopping"},
    "resuming": {"running", "failed", "stopping"},
    "failed": {"resuming", "stopping"},
    "stopping": set(),
}


@pytest.fixture
async def fleet(database: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with sailing(database, tmp_path / "home") as it:
        yield it
    await sink(it.launcher)


def loop(fleet: Fleet, kind: type[Loop[Any]]) -> Any:
    return next(loop_ for loop_ in fleet.services.loops if isinstance(loop_, kind))


async def reconcile(fleet: Fleet) -> Compared:
    compared: Compared = await loop(fleet, InstanceResync).run_once()
    return compared


async def execute(fleet: Fleet, statement: str) -> None:
    async with connected(fleet.dsn) as connection:
        await connection.execute(statement)


@pytest.mark.parametrize(("now", "target"), list(product(InstanceStatus, InstanceStatus)))
def test_an_instance_takes_these_steps_and_no_other(
    now: InstanceStatus, target: InstanceStatus
) -> None:
    if target in STEPS[now]:
        check_step(1, now, target)
        return
    with pytest.raises(InvalidStateTransition):
        check_step(1, now, target)


async def test_a_server_that_belongs_to_nobody_is_ended_and_counted(fleet: Fleet) -> None:
    instance = await fleet.running()
    row = await fleet.row(instance["id"])
    assert await reconcile(fleet) == Compared()
    stranger = Handle(instance_id=4711, launch=1)
    await fleet.launcher.start(_order(fleet, stranger))
    assert (await reconcile(fleet)).orphans == 1
    assert [process.handle for process in await fleet.launcher.list()] == [row.handle]
    text = (await fleet.http.get("/metrics")).text
    assert "orphaned_pods_detected_total 1.0" in text
    assert "reconciliation_passes_total" in text
    assert "reconciliation_pass_duration_seconds_count" in text


def _order(fleet: Fleet, handle: Handle) -> LaunchRequest:
    return LaunchRequest(
        handle=handle,
        slug="x",
        owner="x",
        backend="ladybug",
        memory_bytes=1 << 30,
        cpu_cores=1,
        token="x",
        control_plane_url=str(fleet.http.base_url),
    )


async def test_an_instance_whose_server_vanished_unseen_has_failed(fleet: Fleet) -> None:
    instance = await fleet.running()
    await execute(fleet, "UPDATE penstock.instance SET placed = false")
    row = await fleet.row(instance["id"])
    await fleet.launcher.stop(row.handle, grace=0)
    await fleet.launcher.remove(row.handle)
    await execute(
        fleet,
        "UPDATE penstock.instance SET placed = true, status = 'running', error_code = NULL, "
        "error_message = NULL, launch = launch + 1, "
        "launched_at = penstock.now() - interval '1 minute'",
    )
    done = await reconcile(fleet)
    failed = await fleet.reaches(instance["id"], "failed")
    assert failed["error_code"] == "UNEXPECTED_TERMINATION"
    assert "exit code unknown" in failed["error_message"]
    assert done.missing in (0, 1), "the errands may have been quicker"


async def test_a_start_of_ten_minutes_is_given_up_and_its_server_ended(fleet: Fleet) -> None:
    fleet.tell(hold=True)
    instance = await fleet.create()

    async def loads() -> bool:
        return (await fleet.row(instance["id"])).progress is not None

    await until(loads)
    await execute(
        fleet, "UPDATE penstock.instance SET status_at = penstock.now() - interval '599 s'"
    )
    assert (await reconcile(fleet)).timed_out == 0
    await execute(
        fleet, "UPDATE penstock.instance SET status_at = penstock.now() - interval '601 s'"
    )
    assert (await reconcile(fleet)).timed_out == 1
    answer = await fleet.ask("GET", f"/api/instances/{instance['id']}")
    assert (answer["error_code"], answer["failed_phase"]) == ("STARTUP_TIMEOUT", "loading_data")

    async def ended() -> bool:
        return await fleet.launcher.list() == []

    await until(ended)


async def test_an_end_that_takes_five_minutes_is_forced(fleet: Fleet) -> None:
    instance = await fleet.running()
    await execute(fleet, "UPDATE penstock.instance SET place = 'elsewhere', status = 'stopping'")
    for seconds, forced in ((299, 0), (301, 1), (301, 0)):
        await execute(
            fleet,
            "UPDATE penstock.instance "
            f"SET status_at = penstock.now() - make_interval(secs => {seconds})",
        )
        assert (await reconcile(fleet)).forced == forced
    assert (await fleet.row(instance["id"])).force_stop


async def test_an_idle_instance_is_put_to_sleep_and_an_old_one_ended(fleet: Fleet) -> None:
    idle, busy, old = [await fleet.running() for _ in range(3)]
    await execute(
        fleet,
        "UPDATE penstock.instance SET inactivity_timeout = interval '1 hour',"
        " last_activity_at = penstock.now() -"
        f" CASE instance_id WHEN {busy['id']} THEN interval '59 min' ELSE interval '61 min' END,"
        f" expires_at = CASE instance_id WHEN {old['id']} THEN penstock.now() END",
    )
    done = await loop(fleet, Lifecycle).run_once()
    assert (done.instances, done.failed) == (2, 0)
    assert (await fleet.row(idle["id"])).status == "suspended"
    assert (await fleet.row(busy["id"])).status == "running"
    await fleet.ask("GET", f"/api/instances/{old['id']}", expect=404)
    [left] = await fleet.launcher.list()
    assert left.handle.instance_id == busy["id"]
    [event, *_] = await fleet.ask("GET", f"/api/instances/{idle['id']}/events")
    assert (event["event_type"], event["actor"], event["details"]["reason"]) == (
        "suspended",
        "lifecycle",
        "inactivity",
    )


async def test_what_servers_take_is_measured_from_outside(fleet: Fleet) -> None:
    instance = await fleet.running()
    measured = await loop(fleet, ResourceMonitor).run_once()
    assert (measured.servers, measured.total) == (1, 0)
    shown = await fleet.ask("GET", f"/api/instances/{instance['id']}")
    assert 5 << 20 < shown["memory_usage_bytes"] < 500 << 20
    assert shown["disk_usage_bytes"] > 0
    assert "penstock_instances_running 1.0" in (await fleet.http.get("/metrics")).text


async def test_an_instance_of_another_place_is_not_judged_here(fleet: Fleet) -> None:
    instance = await fleet.create(snapshot_id=await fleet.snapshot(ready=False))
    await execute(
        fleet,
        "UPDATE penstock.instance SET place = 'subprocess:elsewhere:/x', placed = true, "
        "status = 'running', launched_at = penstock.now() - interval '1 hour'",
    )
    assert await reconcile(fleet) == Compared()
    assert (await fleet.row(instance["id"])).status == "running"
