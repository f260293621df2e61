"""Graph servers in pods: the whole way on real graph servers, what users read of a pod that fails,
and control planes that are killed between any two calls."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.graphs.deployment import until
from tests.graphs.fleet import sailing, stand_in
from tests.graphs.test_graph import QUESTION, shop_fleet
from tests.graphs.test_instance_crash import Plane
from tests.launchers.conformance import simulated_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.graphs.fleet import Fleet
    from tests.launchers.conformance import Cluster
    from tests.servers.kubelet import Kubelet
    from tests.servers.kubernetes_api import Done, KubernetesServer

OWNED = ("pods", "services", "secrets")


@pytest.fixture
async def cluster(short_dir: Path, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with simulated_cluster(short_dir / f"p{abs(hash(tmp_path)) % 10**8}") as simulated:
        yield simulated


@pytest.fixture
def server(cluster: Cluster) -> KubernetesServer:
    assert cluster.server is not None
    return cluster.server


@pytest.fixture
def kubelet(cluster: Cluster) -> Kubelet:
    assert cluster.kubelet is not None
    return cluster.kubelet


def leftovers(server: KubernetesServer) -> list[str]:
    return [f"{resource}/{name}" for resource in OWNED for name in server.all(resource)]


async def test_a_graph_runs_in_a_pod_from_its_start_through_queries_to_its_end(
    database: str, tmp_path: Path, cluster: Cluster, server: KubernetesServer, kubelet: Kubelet
) -> None:
    async with shop_fleet(database, tmp_path, cluster) as (fleet, create_instance):
        instance = await create_instance()
        assert (instance["status"], instance["node_count"]) == ("running", 1000), instance
        assert instance["pod_name"] == f"graph-instance-{instance['id']}-1"
        answer = await fleet.through(instance, "/query", method="POST", who="bob", json=QUESTION)
        assert answer.json()["rows"] == [[42, "c42"]], answer.text
        pod = server.pod(instance["pod_name"])
        direct = f"http://{pod['status']['podIP']}:8000"
        async with httpx2.AsyncClient(base_url=direct, trust_env=False) as stranger:
            assert (await stranger.get("/status")).status_code == 401
            assert (await stranger.get("/ready")).status_code == 200
        asleep = await fleet.ask("POST", f"/api/instances/{instance['id']}/suspend", who="olga")
        assert asleep["status"] == "suspended"
        assert leftovers(server) == []
        await fleet.ask("POST", f"/api/instances/{instance['id']}/resume", who="olga")
        await fleet.reaches(instance["id"], "running", within=60)
        again = await fleet.through(instance, "/query", method="POST", json=QUESTION)
        assert again.json()["rows"] == [[42, "c42"]]
        ended = await fleet.ask("POST", f"/api/instances/{instance['id']}/terminate", who="olga")
        assert ended["status"] == "terminated"
    assert leftovers(server) == []
    assert not kubelet.processes


async def test_a_pod_that_somebody_deletes_lets_its_graph_server_end_in_order(
    database: str, tmp_path: Path, cluster: Cluster, server: KubernetesServer, kubelet: Kubelet
) -> None:
    async with shop_fleet(database, tmp_path, cluster) as (fleet, create_instance):
        instance = await create_instance()
        name = instance["pod_name"]
        server._delete("pods", "graphs", name, {})
        failed = await fleet.reaches(instance["id"], "failed", within=60)
        assert failed["error_code"] == "UNEXPECTED_TERMINATION"
        await until(lambda: _true(not leftovers(server)))
        log = kubelet.kept_logs[name]
        assert "shutdown_wished" in log
        assert "pod_deleted" in log


async def test_a_pod_shows_the_token_of_its_service_account_and_is_known_by_it(
    database: str, tmp_path: Path, cluster: Cluster, server: KubernetesServer
) -> None:
    accounts = {
        "kubernetes_service_account": "graph-server",
        "token_review_wrappers": "graphs/graph-server",
    }
    async with shop_fleet(database, tmp_path, cluster, **accounts) as (fleet, create_instance):
        instance = await create_instance()
        assert instance["status"] == "running", instance
        reviewed = [token for token in server.tokens.values() if token.pod is not None]
        assert [token.pod for token in reviewed] == [instance["pod_name"]]
        assert reviewed[0].audiences == ("penstock",)
        assert server.calls_of("create", "tokenreviews")
        projected = next(text for text, token in server.tokens.items() if token.pod)
        mine = await _report(fleet, instance["id"], projected)
        assert mine.status_code == 204, mine.text
        other = await fleet.create(who="olga", snapshot_id=instance["snapshot_id"], name="other")
        theirs = await _report(fleet, other["id"], projected)
        assert theirs.status_code in (401, 403), "an instance's pod reports for that instance only"
        for ended in (instance, other):
            await fleet.ask("POST", f"/api/instances/{ended['id']}/terminate", who="olga")


async def _report(fleet: Fleet, instance_id: int, token: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}", "X-Component": "wrapper"}
    return await fleet.http.post(f"/api/internal/instances/{instance_id}/activity", headers=headers)


async def _true(value: bool) -> bool:
    return value


@asynccontextmanager
async def in_pods(database: str, tmp_path: Path, cluster: Cluster) -> AsyncIterator[Fleet]:
    async with sailing(database, tmp_path / "home", cluster=cluster) as fleet:
        yield fleet


async def test_users_read_why_a_pod_did_not_run(
    database: str, tmp_path: Path, cluster: Cluster, server: KubernetesServer, kubelet: Kubelet
) -> None:
    async with in_pods(database, tmp_path, cluster) as fleet:
        kubelet.images.clear()
        kubelet.never_pulls = True
        unpulled = await fleet.create()
        state = await fleet.reaches(unpulled["id"], "failed", within=30)
        assert state["error_code"] == "STARTUP_FAILED"
        assert state["error_message"].startswith("The image penstock:test cannot be had")
        server.most_pods = 0
        refused = await fleet.create()
        state = await fleet.reaches(refused["id"], "failed", within=30)
        assert state["error_message"].startswith("The quota of namespace graphs has no room")
        server.most_pods = None
        kubelet.images.add("penstock:test")
        running = await fleet.running()
        kubelet.kill(running["pod_name"], oom=True)
        state = await fleet.reaches(running["id"], "failed", within=30)
        assert state["error_code"] == "OOM_KILLED"
        resumed = await fleet.ask("POST", f"/api/instances/{running['id']}/resume")
        assert resumed["status"] == "resuming"
        state = await fleet.reaches(running["id"], "running", within=30)
        assert state["pod_name"].endswith("-2")
        for instance in (unpulled, refused, running):
            await fleet.ask("POST", f"/api/instances/{instance['id']}/terminate")
    assert leftovers(server) == []


async def test_two_control_planes_pass_requests_to_the_same_pods(
    database: str, tmp_path: Path, cluster: Cluster
) -> None:
    async with (
        in_pods(database, tmp_path, cluster) as first,
        in_pods(database, tmp_path, cluster) as second,
    ):
        instance = await first.running()

        async def answers() -> bool:
            return bool((await second.through(instance, "/health")).status_code == 200)

        await until(answers)
        await second.ask("POST", f"/api/instances/{instance['id']}/terminate")
        await first.gone(instance["id"])


CALLS = [("create", "pods"), ("create", "services"), ("create", "secrets"), ("delete", "pods")]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", CALLS, ids="-".join)
async def test_a_control_plane_killed_between_any_two_calls_leaves_nothing_and_doubles_nothing(
    database: str,
    tmp_path: Path,
    cluster: Cluster,
    server: KubernetesServer,
    kubelet: Kubelet,
    call: tuple[str, str],
    after: bool,
) -> None:
    home = tmp_path / "home"
    async with in_pods(database, tmp_path, cluster) as fleet:
        snapshot_id = await fleet.snapshot()
    plane = Plane(database, home)
    plane.more = cluster.control_plane_settings(home, plane.port, stand_in(home / "control.json"))
    try:
        await _killed_at(plane, server, snapshot_id, *call, after=after)
        await until(lambda: _true(not leftovers(server) and not kubelet.processes))
    finally:
        plane.kill_now()
        await plane.http.aclose()
    assert len(kubelet.started) == len(set(kubelet.started)), "no pod was begun twice"


async def _killed_at(
    plane: Plane,
    server: KubernetesServer,
    snapshot_id: int,
    verb: str,
    resource: str,
    *,
    after: bool,
) -> None:
    """One instance from its start to its end; the control plane dies at the first such call."""
    struck = asyncio.Event()

    def strike(call: Done) -> None:
        if (call.verb, call.resource) == (verb, resource) and not struck.is_set():
            struck.set()
            plane.kill_now()
            raise ConnectionResetError

    server.before, server.after = (lambda _: None, strike) if after else (strike, lambda _: None)
    await plane.start()
    creating = asyncio.create_task(plane.create(snapshot_id))

    async def runs() -> bool:
        return {state["status"] for state in (await plane.all()).values()} == {"running"}

    async def is_gone() -> bool:
        return not await plane.all()

    async def end() -> None:
        [instance_id] = await plane.all()
        await plane.http.post(f"/api/instances/{instance_id}/terminate")

    ending = None
    if verb == "delete":
        await until(runs)
        ending = asyncio.create_task(end())
    await asyncio.wait_for(struck.wait(), 60)
    await plane.kill()
    await asyncio.gather(creating, *filter(None, [ending]), return_exceptions=True)
    await plane.start()
    if ending is None:
        await until(runs)
        [instance_id] = await plane.all()
        assert list(server.all("pods")) == [f"graph-instance-{instance_id}-1"]
        assert len(server.all("secrets")) == len(server.all("services")) == 1
        await end()
    await until(is_gone)
    await plane.kill()
