"""Pods: what is made, what becomes of each way to fail, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from penstock.launchers.contract import Ended, Handle
from penstock.launchers.errors import LaunchFailed, NoAddress
from penstock.launchers.kubernetes.ending import LOST_SECONDS, Patience
from penstock.launchers.kubernetes.errors import KubernetesError
from penstock.launchers.kubernetes.manifest import name_of
from penstock.launchers.kubernetes.quantity import bytes_of
from tests.launchers.conformance import (
    GIB,
    LEAST_RIGHTS,
    RUN,
    order,
    python,
    simulated_cluster,
)
from tests.servers.kubernetes_api import Done, Fault, Token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from penstock.launchers.kubernetes.launcher import KubernetesLauncher
    from tests.launchers.conformance import Cluster
    from tests.servers.kubelet import Kubelet
    from tests.servers.kubernetes_api import KubernetesServer, Object

NAME = name_of(RUN)
SLEEPER = python(
    "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    "print('up', flush=True)\ntime.sleep(600)"
)
ACCOUNT = "system:serviceaccount:penstock:control-plane"


@pytest.fixture
async def cluster(short_dir: Path, tmp_path: Path) -> AsyncIterator[Cluster]:
    patience = Patience(schedule_seconds=1.0, image_seconds=1.0)
    folder = short_dir / f"k{abs(hash(tmp_path)) % 10**8}"
    async with simulated_cluster(folder, patience=patience, persistence=10.0) as simulated:
        yield simulated


@pytest.fixture
def server(cluster: Cluster) -> KubernetesServer:
    assert cluster.server is not None
    return cluster.server


@pytest.fixture
def kubelet(cluster: Cluster) -> Kubelet:
    assert cluster.kubelet is not None
    return cluster.kubelet


@pytest.fixture
async def launcher(cluster: Cluster) -> AsyncIterator[KubernetesLauncher]:
    async with cluster.launcher(*SLEEPER) as started:
        yield started


async def until(true: Callable[[], object], within: float = 20.0) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


async def over(launcher: KubernetesLauncher, handle: Handle = RUN) -> Ended:
    return await asyncio.wait_for(launcher.wait(handle), 20)


async def test_a_run_is_a_pod_that_owns_its_service_and_its_secret(
    launcher: KubernetesLauncher, server: KubernetesServer, kubelet: Kubelet
) -> None:
    await launcher.start(order())
    await until(lambda: NAME in kubelet.processes)
    pod = server.pod(NAME)
    [service], [secret] = server.all("services").values(), server.all("secrets").values()
    for owned in (service, secret):
        [owner] = owned["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Pod", pod["metadata"]["uid"])
    assert pod["metadata"]["labels"].items() >= service["spec"]["selector"].items()
    spec = pod["spec"]
    assert (spec["restartPolicy"], spec["automountServiceAccountToken"]) == ("Never", False)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"] == {"cpu": "1", "memory": str(GIB)}
    assert "sizeLimit" in next(v for v in spec["volumes"] if v["name"] == "data")["emptyDir"]
    drain = int(container["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert spec["terminationGracePeriodSeconds"] > drain
    assert "instance-token" not in str(pod)
    assert "storage-secret" not in str(pod)
    await launcher.stop(RUN, grace=5)
    await launcher.remove(RUN)
    assert not server.all("pods")
    assert not server.all("services")
    assert not server.all("secrets")
    assert not kubelet.processes


async def test_a_server_is_reached_at_the_address_of_its_pod(
    cluster: Cluster, server: KubernetesServer, kubelet: Kubelet
) -> None:
    text = (
        "import http.server, os\n"
        "host, port = os.environ['PENSTOCK_INSTANCE_HOST'], os.environ['PENSTOCK_INSTANCE_PORT']\n"
        "http.server.HTTPServer((host, int(port)), http.server.BaseHTTPRequestHandler)"
        ".serve_forever()"
    )
    async with cluster.launcher(*python(text)) as launcher, cluster.launcher() as other:
        with pytest.raises(NoAddress):
            launcher.address(RUN)
        await launcher.start(order())
        await until(lambda: NAME in kubelet.processes)
        ip = server.pod(NAME)["status"]["podIP"]

        async def known(to: KubernetesLauncher) -> None:
            deadline = time.monotonic() + 20
            while True:
                try:
                    assert to.address(RUN).url == f"http://{ip}:8000"
                except NoAddress:
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.02)
                else:
                    return

        await asyncio.gather(known(launcher), known(other))
        deadline = time.monotonic() + 20
        while True:
            try:
                _, writer = await asyncio.open_connection(ip, 8000)
            except OSError:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)
            else:
                writer.close()
                break


async def test_what_an_operator_chooses_is_in_the_pod(
    cluster: Cluster, server: KubernetesServer
) -> None:
    patch = {
        "metadata": {"labels": {"team": "graphs"}},
        "spec": {
            "priorityClassName": "high",
            "containers": [
                {"name": "graph-server", "env": [{"name": "EXTRA", "value": "1"}]},
                {"name": "sidecar", "image": "other"},
            ],
        },
    }
    async with cluster.launcher(
        storage_class="fast",
        volume_gb=3,
        node_selector={"disk": "ssd"},
        tolerations=({"key": "graphs", "operator": "Exists"},),
        service_account="graph-server",
        cpu_request_share=0.5,
        pod_patch=patch,
    ) as launcher:
        await launcher.start(order(cpu=2))
        spec = server.pod(NAME)["spec"]
        claim = next(v for v in spec["volumes"] if v["name"] == "data")["ephemeral"]
        assert claim["volumeClaimTemplate"]["spec"]["storageClassName"] == "fast"
        assert spec["nodeSelector"] == {"disk": "ssd"}
        assert spec["tolerations"][0] == {"key": "graphs", "operator": "Exists"}
        assert (spec["serviceAccountName"], spec["priorityClassName"]) == ("graph-server", "high")
        assert [c["name"] for c in spec["containers"]] == ["graph-server", "sidecar"]
        assert spec["containers"][0]["image"] == "penstock:test"
        assert {"name": "EXTRA", "value": "1"} in spec["containers"][0]["env"]
        assert spec["containers"][0]["resources"]["requests"]["cpu"] == "1000m"
        assert server.pod(NAME)["metadata"]["labels"]["team"] == "graphs"
        await launcher.remove(RUN)


async def test_the_log_of_a_pod_with_other_containers_is_the_servers(
    cluster: Cluster,
) -> None:
    command = [sys.executable, *python("print('no luck')")]
    containers = [{"name": "graph-server", "command": command}, {"name": "sidecar", "image": "o"}]
    async with cluster.launcher(pod_patch={"spec": {"containers": containers}}) as launcher:
        await launcher.start(order())
        await over(launcher)
        assert await launcher.logs(RUN, tail=100) == "no luck\n"
        await launcher.remove(RUN)


async def test_the_rights_of_the_documented_role_are_enough(
    cluster: Cluster, server: KubernetesServer, kubelet: Kubelet
) -> None:
    server.tokens["least"] = Token(user=ACCOUNT)
    server.rules[ACCOUNT] = LEAST_RIGHTS
    weak = replace(cluster, connection=replace(cluster.connection, token="least"))
    async with weak.launcher(*SLEEPER) as launcher:
        await launcher.start(order())
        await until(lambda: NAME in kubelet.processes)
        await launcher.start(order())
        await until(lambda: launcher.capabilities.resize)
        await launcher.resize(RUN, cpu_cores=2, memory_bytes=2 * GIB)
        assert len(await launcher.list()) == 1
        await launcher.logs(RUN, tail=10)
        await launcher.stop(RUN, grace=1)
        await launcher.remove(RUN)
    assert not server.all("secrets")


# what goes wrong


async def test_memory_past_the_limit_is_told_as_such(
    launcher: KubernetesLauncher, kubelet: Kubelet
) -> None:
    await launcher.start(order())
    await until(lambda: NAME in kubelet.processes)
    kubelet.kill(NAME, oom=True)
    assert await over(launcher) == Ended(code=-9, oom=True)


@pytest.mark.parametrize("never", [True, False])
async def test_an_image_that_does_not_exist_is_named(
    cluster: Cluster, kubelet: Kubelet, never: bool
) -> None:
    kubelet.never_pulls = never
    async with cluster.launcher(image="penstock:typo") as launcher:
        await launcher.start(order())
        ended = await over(launcher)
        assert ended.cause is not None
        assert ended.cause.startswith("The image penstock:typo cannot be had")
        assert 'no such image "penstock:typo"' in ended.cause
        await launcher.stop(RUN, grace=0)
        await launcher.remove(RUN)
        assert await launcher.list() == []


async def test_a_pod_without_a_node_is_waited_for_and_then_given_up_in_the_schedulers_words(
    launcher: KubernetesLauncher, kubelet: Kubelet
) -> None:
    kubelet.full = "0/3 nodes are available: 3 Insufficient memory."
    await launcher.start(order())
    waiting = asyncio.create_task(over(launcher))
    ended = await waiting
    assert ended.cause == (
        "No node had room for the graph server within 1 s."
        " The scheduler says: 0/3 nodes are available: 3 Insufficient memory."
    )
    kubelet.full = None
    other = Handle(instance_id=8, launch=1)
    await launcher.start(order(other))
    await until(lambda: name_of(other) in kubelet.processes)


async def test_a_node_that_is_lost_ends_its_runs_and_they_can_be_removed(
    launcher: KubernetesLauncher, server: KubernetesServer, kubelet: Kubelet
) -> None:
    await launcher.start(order())
    await until(lambda: NAME in kubelet.processes)
    kubelet.lose_node()
    server.clock_ahead = LOST_SECONDS + 5
    await launcher.list()
    ended = await over(launcher)
    assert ended.cause == "The graph server was lost: node node-1 does not answer any more."
    await launcher.remove(RUN)
    assert not server.all("pods")


async def test_an_evicted_pod_says_what_the_node_said(
    launcher: KubernetesLauncher, kubelet: Kubelet
) -> None:
    await launcher.start(order())
    await until(lambda: NAME in kubelet.processes)
    kubelet.evict(NAME, "The node was low on resource: memory.")
    ended = await over(launcher)
    assert ended.cause == (
        "The node evicted the graph server: The node was low on resource: memory."
    )


async def test_a_pod_that_somebody_deletes_ends_its_run(
    launcher: KubernetesLauncher, server: KubernetesServer, kubelet: Kubelet
) -> None:
    await launcher.start(order())
    await until(lambda: NAME in kubelet.processes)
    waiting = asyncio.create_task(over(launcher))
    server._delete("pods", "graphs", NAME, {"gracePeriodSeconds": 0})
    ended = await waiting
    assert ended.cause == f"The pod {NAME} of the graph server was deleted by somebody else."
    assert await launcher.inspect(RUN) is None


async def test_labels_that_somebody_edits_are_mended_and_the_run_goes_on(
    launcher: KubernetesLauncher, server: KubernetesServer, kubelet: Kubelet
) -> None:
    await launcher.start(order())
    await until(lambda: NAME in kubelet.processes)
    waiting = asyncio.create_task(launcher.wait(RUN))
    labels = dict(server.pod(NAME)["metadata"]["labels"])

    def strip(pod: Object) -> None:
        pod["metadata"]["labels"] = {"mine": "now"}

    server.edit("pods", NAME, strip)
    await until(lambda: server.pod(NAME)["metadata"]["labels"].items() >= labels.items())
    server.edit("pods", NAME, lambda pod: pod["metadata"]["labels"].update({"instance-id": "99"}))

    async def mended() -> bool:
        await launcher.attend()
        return server.pod(NAME)["metadata"]["labels"]["instance-id"] == "7"

    deadline = time.monotonic() + 20
    while not await mended():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    assert [run.handle for run in await launcher.list()] == [RUN]
    assert not waiting.done()
    assert NAME in kubelet.processes
    waiting.cancel()


async def test_a_pod_of_the_same_name_that_is_not_ours_is_left_alone(
    cluster: Cluster, launcher: KubernetesLauncher, server: KubernetesServer, kubelet: Kubelet
) -> None:
    async with cluster.launcher(*SLEEPER, installation="neighbour") as neighbour:
        await neighbour.start(order())
        await until(lambda: NAME in kubelet.processes)
        with pytest.raises(LaunchFailed, match="is not of this installation"):
            await launcher.start(order())
        assert await launcher.inspect(RUN) is None
        assert await launcher.list() == []
        await launcher.stop(RUN, grace=0)
        await launcher.remove(RUN)
        assert NAME in kubelet.processes
        assert [run.handle for run in await neighbour.list()] == [RUN]
        assert neighbour.place != launcher.place


async def test_a_quota_that_is_used_up_is_told_in_its_own_numbers(
    launcher: KubernetesLauncher, server: KubernetesServer
) -> None:
    server.most_pods = 0
    with pytest.raises(LaunchFailed, match="The quota of namespace graphs has no room") as refused:
        await launcher.start(order())
    assert "used: pods=0, limited: pods=0" in refused.value.message


async def test_a_broken_off_start_is_completed_though_its_pod_used_the_quota_up(
    launcher: KubernetesLauncher, server: KubernetesServer, kubelet: Kubelet
) -> None:
    server.faults.append(Fault(verb="create", resource="secrets", code=400))
    with pytest.raises(LaunchFailed):
        await launcher.start(order())
    server.most_pods = 1
    await launcher.start(order())
    await until(lambda: NAME in kubelet.processes)


async def test_a_rule_of_the_namespace_is_told_apart_from_a_missing_right(
    launcher: KubernetesLauncher, server: KubernetesServer
) -> None:
    server.admission = lambda _: 'violates PodSecurity "restricted:latest": seccompProfile'
    with pytest.raises(LaunchFailed, match="A rule of namespace graphs refused to create pods"):
        await launcher.start(order())


@pytest.mark.parametrize("resource", ["pods", "services", "secrets"])
async def test_a_missing_right_names_the_verb_the_resource_and_the_account(
    cluster: Cluster, server: KubernetesServer, resource: str
) -> None:
    server.tokens["least"] = Token(user=ACCOUNT)
    server.rules[ACCOUNT] = LEAST_RIGHTS - {("create", resource)}
    weak = replace(cluster, connection=replace(cluster.connection, token="least"))
    async with weak.launcher(*SLEEPER) as launcher:
        with pytest.raises(LaunchFailed) as refused:
            await launcher.start(order())
        assert refused.value.message == (
            f"ServiceAccount penstock/control-plane may not create {resource} in namespace graphs."
        )
        await launcher.remove(RUN)
        assert not server.all("pods")


async def test_a_namespace_that_does_not_exist_is_named(cluster: Cluster) -> None:
    async with cluster.launcher(namespace="typo") as launcher:
        with pytest.raises(LaunchFailed) as refused:
            await launcher.start(order())
        assert refused.value.message == "There is no namespace typo."
        assert "PENSTOCK_KUBERNETES_NAMESPACE" in (refused.value.hint or "")


# what is repeated, and what is broken off


async def test_an_api_server_that_restarts_while_a_run_is_started_and_stopped_costs_only_time(
    launcher: KubernetesLauncher, server: KubernetesServer, kubelet: Kubelet
) -> None:
    await server.close()
    starting = asyncio.create_task(launcher.start(order()))
    await asyncio.sleep(0.3)
    await server.open()
    await starting
    await until(lambda: NAME in kubelet.processes)
    await server.close()
    stopping = asyncio.create_task(launcher.stop(RUN, grace=1))
    await asyncio.sleep(0.3)
    await server.open()
    await stopping
    assert not kubelet.processes


@pytest.mark.parametrize("misdeed", ["drop", "drop_answer", "refuse"])
@pytest.mark.parametrize("resource", ["pods", "services", "secrets"])
async def test_a_call_whose_answer_is_lost_is_said_again_and_doubles_nothing(
    launcher: KubernetesLauncher,
    server: KubernetesServer,
    kubelet: Kubelet,
    misdeed: Any,
    resource: str,
) -> None:
    server.faults.append(Fault(verb="create", resource=resource, misdeed=misdeed, times=2))
    await launcher.start(order())
    await until(lambda: NAME in kubelet.processes)
    assert kubelet.started == [NAME]
    assert len(server.all("secrets")) == len(server.all("services")) == 1


async def test_a_service_of_an_earlier_pod_of_that_name_is_replaced(
    launcher: KubernetesLauncher, server: KubernetesServer, kubelet: Kubelet
) -> None:
    """The garbage collector may come late."""
    server._collect = lambda: None  # type: ignore[method-assign]
    await launcher.start(order())
    await until(lambda: NAME in kubelet.processes)
    await launcher.remove(RUN)
    assert server.all("services")
    await launcher.start(order())
    [owner] = server.all("services")[NAME]["metadata"]["ownerReferences"]
    assert owner["uid"] == server.pod(NAME)["metadata"]["uid"]
    await until(lambda: NAME in kubelet.processes)
    assert len(server.all("secrets")) == 2, "the other one is the garbage collector's"


class Killed:
    """Breaks a control plane off at its n-th call, before or after the server has done it."""

    def __init__(self, server: KubernetesServer, number: int, *, after: bool) -> None:
        self.happened = asyncio.Event()
        self._left = number
        self._server = server
        if after:
            server.after = self._count
        else:
            server.before = self._count

    def _count(self, call: Done) -> None:
        if call.verb in ("list", "watch") or call.resource == "resources":
            return
        if self._left == 0:
            self.happened.set()
            raise ConnectionResetError
        self._left -= 1

    def lift(self) -> None:
        self._server.before = self._server.after = lambda _: None


async def broken_off(
    cluster: Cluster, killed: Killed, work: Callable[[KubernetesLauncher], Any]
) -> bool:
    """Do the work in a control plane that dies there; False if it was through before."""
    async with cluster.launcher(*SLEEPER) as launcher:
        task = asyncio.create_task(work(launcher))
        death = asyncio.create_task(killed.happened.wait())
        await asyncio.wait({task, death}, return_when="FIRST_COMPLETED")
        dead = killed.happened.is_set()
        for pending in (task, death):
            pending.cancel()
        await asyncio.gather(task, death, return_exceptions=True)
    killed.lift()
    return dead


@pytest.mark.parametrize("after", [False, True])
async def test_a_start_that_is_broken_off_anywhere_is_completed_by_whoever_comes_next(
    cluster: Cluster, server: KubernetesServer, kubelet: Kubelet, after: bool
) -> None:
    for number in range(20):
        handle = Handle(instance_id=number + 1, launch=1)
        name = name_of(handle)
        killed = Killed(server, number, after=after)
        dead = await broken_off(cluster, killed, lambda its, h=handle: its.start(order(h)))
        async with cluster.launcher(*SLEEPER) as following:
            await following.start(order(handle))
            await until(lambda: name in kubelet.processes)  # noqa: B023
            assert kubelet.started.count(name) == 1
            for resource in ("pods", "services", "secrets"):
                assert len(server.all(resource)) == 1, (number, resource)
            await following.stop(handle, grace=1)
            await following.remove(handle)
        for resource in ("pods", "services", "secrets"):
            assert not server.all(resource), (number, resource)
        assert not kubelet.processes
        if not dead:
            assert number >= 3, "pod, service and secret were all tried"
            return
    pytest.fail("it never came through")


@pytest.mark.parametrize("after", [False, True])
async def test_an_end_that_is_broken_off_anywhere_is_completed_by_whoever_comes_next(
    cluster: Cluster, server: KubernetesServer, kubelet: Kubelet, after: bool
) -> None:
    async def end(launcher: KubernetesLauncher) -> None:
        await launcher.stop(RUN, grace=1)
        await launcher.remove(RUN)

    for number in range(30):
        async with cluster.launcher(*SLEEPER) as launcher:
            await launcher.start(order())
            await until(lambda: NAME in kubelet.processes)
        dead = await broken_off(cluster, Killed(server, number, after=after), end)
        async with cluster.launcher(*SLEEPER) as following:
            await end(following)
        for resource in ("pods", "services", "secrets"):
            assert not server.all(resource), (number, resource)
        assert not kubelet.processes
        if not dead:
            return
    pytest.fail("it never came through")


async def test_usage_is_what_the_metrics_server_measured(
    launcher: KubernetesLauncher, server: KubernetesServer
) -> None:
    await launcher.start(order())
    assert await launcher.usage(RUN) is None, "there is no metrics server"
    server.usage[NAME] = "2048Ki"
    usage = await launcher.usage(RUN)
    assert usage is not None
    assert (usage.memory_bytes, usage.disk_bytes) == (2048 * 1024, None)


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("1Ki", 1024), ("1.5M", 1_500_000), ("2Gi", 2**31), ("x", 0)]
)
def test_quantities_are_read_as_kubernetes_writes_them(text: str, number: int) -> None:
    assert bytes_of(text) == number


@pytest.mark.parametrize("can", [True, False])
async def test_a_resize_reaches_the_running_pod_where_the_server_can(
    cluster: Cluster, server: KubernetesServer, kubelet: Kubelet, can: bool
) -> None:
    if not can:
        server.resources.remove("pods/resize")
    async with cluster.launcher(*SLEEPER) as launcher:
        await launcher.start(order())
        await until(lambda: NAME in kubelet.processes)
        if can:
            await until(lambda: launcher.capabilities.resize)
            await launcher.resize(RUN, cpu_cores=3, memory_bytes=4 * GIB)
            [container] = server.pod(NAME)["spec"]["containers"]
            assert container["resources"]["limits"] == {"cpu": "3", "memory": str(4 * GIB)}
            assert container["image"] == "penstock:test"
        else:
            await until(lambda: server.calls_of("watch", "pods"))
            assert not launcher.capabilities.resize
            with pytest.raises(KubernetesError):
                await launcher.resize(RUN, cpu_cores=3, memory_bytes=4 * GIB)
