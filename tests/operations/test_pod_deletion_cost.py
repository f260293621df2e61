"""Pods of workers with claimed jobs cost more than idle ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest
from prometheus_client import CollectorRegistry

from penstock.kit.db import Db
from penstock.kit.loop import LoopMetrics
from penstock.launchers.kubernetes.api import KubernetesApi
from penstock.launchers.kubernetes.connection import Connection
from penstock.launchers.kubernetes.errors import KubernetesError
from penstock.operations.pod_deletion_cost import COST, PodDeletionCost
from tests.jobs.test_counting import ADD, RUNNING
from tests.servers.kubernetes_api import Fault, KubernetesServer, Token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SELECTOR = "app.kubernetes.io/component=worker"
RIGHTS = {("list", "pods"), ("patch", "pods")}


@pytest.fixture
async def server() -> AsyncIterator[KubernetesServer]:
    async with KubernetesServer() as started:
        started.tokens["plane"] = Token(user="plane")
        started.rules["plane"] = set(RIGHTS)
        yield started


@pytest.fixture
async def loop(server: KubernetesServer, database: str) -> AsyncIterator[PodDeletionCost]:
    connection = Connection(url=server.url, token="plane", namespace="default")
    async with Db(database) as db, KubernetesApi(connection) as api:
        metrics = LoopMetrics(CollectorRegistry())
        yield PodDeletionCost(db, api, selector=SELECTOR, every=5, metrics=metrics)


async def add_pods(server: KubernetesServer, *names: str, component: str = "worker") -> None:
    async with KubernetesApi(Connection(url=server.url, token="admin")) as admin:
        for name in names:
            labels = {"app.kubernetes.io/component": component}
            await admin.create(
                "pods",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": name, "labels": labels},
                    "spec": {"containers": [{"name": "worker", "image": "penstock:test"}]},
                },
            )


async def claim(database: str, worker: str, jobs: int) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute(ADD, "export", RUNNING, jobs)
    await connection.execute(
        "UPDATE penstock.live SET worker = $1 WHERE worker IS NULL AND status = 1", worker
    )
    await connection.close()


async def finish_all(database: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute("DELETE FROM penstock.live")
    await connection.close()


async def costs(server: KubernetesServer) -> dict[str, str | None]:
    async with KubernetesApi(Connection(url=server.url, token="admin")) as admin:
        pods, _ = await admin.list("pods", selector="")
        return {
            pod["metadata"]["name"]: (pod["metadata"].get("annotations") or {}).get(COST)
            for pod in pods
        }


async def test_a_busy_pod_costs_its_jobs_and_an_idle_one_nothing(
    server: KubernetesServer, loop: PodDeletionCost, database: str
) -> None:
    await add_pods(server, "busy", "busier", "idle")
    await add_pods(server, "other", component="control-plane")
    await claim(database, "busy", 1)
    await claim(database, "busier", 3)
    await claim(database, "other", 2)
    assert (await loop.run_once()).changed == 2
    assert await costs(server) == {"busy": "1", "busier": "3", "idle": None, "other": None}
    await finish_all(database)
    assert (await loop.run_once()).changed == 2
    assert await costs(server) == {"busy": "0", "busier": "0", "idle": None, "other": None}


async def test_a_pod_that_costs_what_it_should_is_left_alone(
    server: KubernetesServer, loop: PodDeletionCost, database: str
) -> None:
    await add_pods(server, "busy", "idle")
    await claim(database, "busy", 1)
    await loop.run_once()
    server.calls.clear()
    assert (await loop.run_once()).changed == 0
    assert {call.verb for call in server.calls} == {"list"}


async def test_a_pod_that_is_gone_meanwhile_stops_nothing(
    server: KubernetesServer, loop: PodDeletionCost, database: str
) -> None:
    await add_pods(server, "gone", "busy")
    await claim(database, "gone", 2)
    await claim(database, "busy", 1)
    server.faults.append(Fault(verb="patch", resource="pods", code=404))
    assert (await loop.run_once()).changed == 1
    assert (await costs(server))["busy"] == "1"


async def test_without_the_right_to_patch_the_pass_fails_and_names_the_verb(
    server: KubernetesServer, loop: PodDeletionCost, database: str
) -> None:
    server.rules["plane"].discard(("patch", "pods"))
    await add_pods(server, "busy")
    await claim(database, "busy", 1)
    with pytest.raises(KubernetesError, match="patch"):
        await loop.run_once()
