"""Cluster health, instance counts and metrics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from penstock.kit.errors import Unavailable
from penstock.operations.health import Health, overall
from tests.api.answers import error
from tests.api.running_api import Api, data_of, running_api
from tests.graphs.deployment import shop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.api.control_plane import Edge

CLUSTER = "/api/cluster"


@pytest.fixture
async def api(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(database, edge, tmp_path / "home") as api:
        yield api


async def health(api: Api) -> tuple[str, dict[str, Any]]:
    report = data_of(await api.oz.get(f"{CLUSTER}/health"))
    assert report["checked_at"].endswith("Z")
    return report["status"], report["components"]


async def test_parts_that_answer_are_healthy_and_timed(api: Api, tmp_path: Path) -> None:
    await api.graphs.sources.add(
        name="shop", kind="duckdb", owner="ann", config=shop(tmp_path), secrets={}
    )
    _, components = await health(api)
    assert {"database", "storage", "workers", "source:shop"} <= set(components)
    for name in ("database", "storage", "source:shop"):
        assert components[name]["status"] == "healthy", components[name]
        assert components[name]["error"] is None
        assert components[name]["latency_ms"] > 0


async def test_a_part_that_is_away_says_why_and_degrades_the_whole(
    api: Api, tmp_path: Path
) -> None:
    config = shop(tmp_path)
    await api.graphs.sources.add(name="shop", kind="duckdb", owner="ann", config=config, secrets={})
    (tmp_path / "shop.duckdb").unlink()
    status, components = await health(api)
    assert status == "degraded"
    assert components["source:shop"]["status"] == "unhealthy"
    assert components["source:shop"]["error"]
    assert components["workers"]["error"] == "No worker was seen in the last 60 s."


async def test_a_part_that_hangs_or_breaks_is_told_without_its_insides() -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    async def breaks() -> None:
        raise RuntimeError("secret")

    async def refuses() -> None:
        raise Unavailable("Not today.")

    async def fine() -> None:
        return None

    async def sources() -> dict[str, Any]:
        raise Unavailable("No database.")

    answers = await Health(
        {"database": fine, "a": hangs, "b": breaks, "c": refuses}, sources, timeout=0.05
    ).ask()
    assert answers["a"].error == "No answer within 0.05 s."
    assert answers["b"].error == "The check failed with RuntimeError; see the log."
    assert answers["c"].error == "Not today."
    assert overall(answers) == "degraded"
    assert overall({"database": answers["a"]}) == "unhealthy"
    assert overall({"database": answers["database"]}) == "healthy"


async def test_instances_are_counted_by_status_and_owner_against_the_limits(api: Api) -> None:
    data_of(
        await api.oz.put("/api/config/concurrency", json={"per_analyst": 2, "cluster_total": 3})
    )
    for owner, status in (
        ("ann", "running"),
        ("ben", "suspended"),
        ("ben", "failed"),
        ("ben", "stopping"),
    ):
        await api.instance(owner=owner, status=status)
    assert data_of(await api.oz.get(f"{CLUSTER}/instances")) == {
        "total": 4,
        "by_status": {"running": 1, "suspended": 1, "failed": 1, "stopping": 1},
        "by_owner": [{"owner_username": "ben", "count": 3}, {"owner_username": "ann", "count": 1}],
        "limits": {"per_analyst": 2, "cluster_total": 3, "cluster_used": 2, "cluster_available": 1},
    }


async def test_metrics_tell_what_everything_takes(api: Api) -> None:
    await api.mapping()
    await api.snapshot(status="ready", size_bytes=2**40, prefix="p/")
    await api.instance(status="running", memory_usage_bytes=5, disk_usage_bytes=7)
    metrics = data_of(await api.oz.get(f"{CLUSTER}/metrics"))
    assert (metrics["mappings"], metrics["snapshots"], metrics["instances"]) == (
        1,
        {"ready": 1},
        {"running": 1},
    )
    assert (
        metrics["snapshot_bytes"],
        metrics["instance_memory_bytes"],
        metrics["instance_disk_bytes"],
    ) == (
        2**40,
        5,
        7,
    )
    assert (metrics["export_jobs"], metrics["export_queue_depth"]) == ({}, 0)
    assert metrics["workers"] == {"total": 0, "slots": 0, "running": 0}
    assert metrics["database_bytes"] > 0
    assert set(metrics["database_connections"]) == {"active", "idle"}


async def test_only_operators_look(api: Api) -> None:
    for what in ("health", "instances", "metrics"):
        for somebody in (api.ann, api.ada):
            error(await somebody.get(f"{CLUSTER}/{what}"), 403, "PERMISSION_DENIED")
