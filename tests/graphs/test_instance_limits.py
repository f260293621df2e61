"""How many instances there may be, and how much memory they may take, asked for by many at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from penstock.graphs.instances.model import GIB
from penstock.graphs.instances.sizing import memory_gb
from tests.graphs.fleet import sailing, sink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.graphs.fleet import Fleet


@pytest.fixture
async def fleet(database: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with sailing(
        database, tmp_path / "home", instance_memory_per_user_gb=20, instance_memory_total_gb=30
    ) as it:
        yield it
    await sink(it.launcher)


async def crowd(fleet: Fleet, snapshot_id: int, who: list[str]) -> list[int]:
    """Everybody asks at the same moment; the statuses of the answers."""

    async def ask(name: str) -> int:
        answer = await fleet.http.post(
            "/api/instances",
            json={"name": "n", "snapshot_id": snapshot_id},
            headers={"Authorization": f"Bearer {name}"},
        )
        if answer.status_code != 201:
            assert answer.json()["error"]["code"] == "CONCURRENCY_LIMIT", answer.text
        return answer.status_code

    return await asyncio.gather(*map(ask, who))


async def test_of_many_who_ask_at_once_exactly_as_many_get_one_as_there_may_be(
    fleet: Fleet,
) -> None:
    snapshot_id = await fleet.snapshot(ready=False)
    await fleet.graphs.config.set_concurrency(per_analyst=4, cluster_total=7, actor="test")
    answers = await crowd(fleet, snapshot_id, ["ada"] * 12)
    assert sorted(answers) == [201] * 4 + [409] * 8
    refused = await fleet.create(snapshot_id=snapshot_id, expect=409)
    assert refused["details"] | {"hint": ""} == {
        "limit_type": "per_analyst",
        "current_count": 4,
        "max_allowed": 4,
        "hint": "",
    }
    answers = await crowd(fleet, snapshot_id, ["bob", "eve"] * 4)
    assert answers.count(201) == 3
    refused = await fleet.create(snapshot_id=snapshot_id, who="olga", expect=409)
    assert (refused["details"]["limit_type"], refused["details"]["current_count"]) == (
        "cluster_total",
        7,
    )
    mine = await fleet.ask("GET", "/api/instances/user/status")
    assert (mine["active_instances"], mine["max_instances"], mine["can_create"]) == (4, 4, False)
    assert len(mine["instances"]) == 4
    await fleet.ask("DELETE", f"/api/instances/{mine['instances'][0]['id']}")
    assert await crowd(fleet, snapshot_id, ["ada", "bob", "ada"]) in (
        [201, 409, 409],
        [409, 201, 409],
        [409, 409, 201],
    )


async def test_what_is_refused_leaves_neither_snapshot_nor_jobs_behind(fleet: Fleet) -> None:
    waiting = await fleet.snapshot(ready=False)
    await fleet.create(snapshot_id=waiting)
    await fleet.graphs.config.set_concurrency(per_analyst=1, cluster_total=7, actor="test")
    source = await fleet.graphs.sources.add(
        name="d", kind="duckdb", owner="ada", config={"database": "/x"}, secrets={}
    )
    await fleet.graphs.sources.make_default(source.data_source_id)
    mapping_id = await fleet.mapping()
    refused = await fleet.create(mapping_id=mapping_id, expect=409)
    assert refused["code"] == "CONCURRENCY_LIMIT"
    async with fleet.transaction() as tx:
        assert await tx.connection.fetchval("SELECT count(*) FROM penstock.snapshot") == 1
        assert (
            await tx.connection.fetchval(
                "SELECT count(*) FROM penstock.live WHERE queue = 'export'"
            )
            == 0
        )
    instance = await fleet.create(mapping_id=mapping_id, who="bob")
    assert len(await fleet.graphs.exports.of_snapshot(instance["snapshot_id"])) == 1


async def test_memory_is_limited_for_a_user_and_for_all_of_them(fleet: Fleet) -> None:
    large = await fleet.snapshot(size=int(1.6 * GIB))
    fleet.tell(hold=True)
    first = await fleet.create(snapshot_id=large)
    assert first["memory_gb"] == 8
    await fleet.create(snapshot_id=large)
    refused = await fleet.create(snapshot_id=large, expect=409)
    assert refused["details"]["limit_type"] == "user_memory_gb"
    assert (refused["details"]["current_count"], refused["details"]["max_allowed"]) == (16, 20)
    await fleet.create(snapshot_id=large, who="bob")
    refused = await fleet.create(snapshot_id=large, who="bob", expect=409)
    assert refused["details"]["limit_type"] == "cluster_memory_gb"
    place = f"/api/instances/{first['id']}/memory"
    await fleet.ask("PUT", place, memory_gb=12)
    refused = await fleet.ask("PUT", place, memory_gb=13, expect=409)
    assert refused["code"] == "CONCURRENCY_LIMIT"


async def test_a_snapshot_that_no_instance_has_the_memory_for_is_refused(fleet: Fleet) -> None:
    refused = await fleet.create(
        snapshot_id=await fleet.snapshot(size=GIB * 31 // 4 + 1), expect=409
    )
    assert refused["code"] == "CONCURRENCY_LIMIT"
    facts = {"limit_type": "instance_memory_gb", "current_count": 33, "max_allowed": 32}
    assert facts.items() <= refused["details"].items()


async def test_a_snapshot_that_turns_out_too_large_for_the_limits_fails_the_start_and_says_why(
    fleet: Fleet,
) -> None:
    snapshot_id = await fleet.snapshot(ready=False)
    created = await fleet.create(snapshot_id=snapshot_id)
    await fleet.finish(snapshot_id, size=6 * GIB)
    instance = await fleet.reaches(created["id"], "failed")
    assert instance["error_code"] == "STARTUP_FAILED"
    assert "25 GB" in instance["error_message"]


@pytest.mark.parametrize(
    ("size", "backend", "expected"),
    [
        (None, "ladybug", 2),
        (0, "ladybug", 2),
        (GIB // 4, "ladybug", 2),
        (GIB // 4 + 1, "ladybug", 3),
        (GIB, "ryugraph", 5),
        (GIB, "falkordb", 11),
        (GIB * 31 // 4, "ladybug", 32),
        (GIB * 31 // 4 + 1, "ladybug", 33),
    ],
)
def test_memory_grows_with_the_snapshot_and_the_engine(
    size: int | None, backend: str, expected: int
) -> None:
    assert memory_gb(size, backend) == expected
    assert memory_gb(size, backend, at_least=20) == max(20, expected)
