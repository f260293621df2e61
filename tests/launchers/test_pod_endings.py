"""What is told of a pod, from each status that Kubernetes gives one."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.launchers.contract import Ended
from penstock.launchers.kubernetes import pod
from penstock.launchers.kubernetes.ending import LOST_SECONDS, Patience, ending, removed

CREATED = "2026-11-19T12:00:00Z"
PATIENCE = Patience(schedule_seconds=300, image_seconds=60)


def read(*, deleted: str | None = None, node: str = "n1", **status: Any) -> pod.Pod:
    metadata: dict[str, Any] = {"name": "graph-instance-7-1", "creationTimestamp": CREATED}
    if deleted is not None:
        metadata["deletionTimestamp"] = deleted
    return pod.read({"metadata": metadata, "spec": {"nodeName": node}, "status": status})


def after(it: pod.Pod, seconds: float) -> Ended | None:
    return ending(it, it.created + seconds, PATIENCE, image="penstock:1")


def container(**state: Any) -> list[dict[str, Any]]:
    other = {"name": "a-sidecar", "state": {"running": {}}}
    return [other, {"name": "graph-server", "state": state}]


@pytest.mark.parametrize(("exit_code", "code"), [(0, 0), (3, 3), (137, -9), (139, -11)])
def test_an_exit_code_is_the_servers_own_also_beside_other_containers(
    exit_code: int, code: int
) -> None:
    states = container(terminated={"exitCode": exit_code, "reason": "Error"})
    assert after(read(phase="Running", containerStatuses=states), 5) == Ended(code=code)


def test_a_server_that_runs_is_not_over_whatever_time_it_is() -> None:
    states = container(running={})
    assert after(read(phase="Running", containerStatuses=states), 10**7) is None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (
            {"reason": "Evicted", "message": "The node was low on resource: memory."},
            "The node evicted the graph server: The node was low on resource: memory.",
        ),
        ({"reason": "NodeLost"}, "The graph server was lost with its node n1."),
        (
            {"reason": "Terminated", "message": "Pod was terminated in response to node shutdown."},
            "The node of the graph server was shut down:"
            " Pod was terminated in response to node shutdown.",
        ),
        (
            {"reason": "OutOfmemory", "message": "Node didn't have enough resource: memory"},
            "Node n1 did not accept the graph server (OutOfmemory):"
            " Node didn't have enough resource: memory",
        ),
        (
            {"reason": "DeadlineExceeded"},
            "The graph server ran longer than its pod was allowed to.",
        ),
    ],
)
def test_a_pod_that_its_node_ended_says_why(status: dict[str, str], words: str) -> None:
    ended = after(read(phase="Failed", **status), 5)
    assert ended is not None
    assert str(ended) == words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("PreemptionByScheduler", "made room for a more important pod"),
        ("EvictionByEvictionAPI", "was evicted"),
        ("DeletionByTaintManager", "was lost with its node n1"),
    ],
)
def test_a_pod_that_is_gone_is_told_by_what_was_last_seen_of_it(reason: str, words: str) -> None:
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "So."}
    ended = removed(read(phase="Running", conditions=[disruption]))
    assert words in str(ended)
    assert str(ended).endswith(": So.")


def test_a_pod_of_which_nothing_was_seen_may_have_been_deleted() -> None:
    assert "somebody may have deleted it" in str(removed(None))


@pytest.mark.parametrize(
    ("reason", "seconds", "is_over"),
    [
        ("ContainerCreating", 3600, False),
        ("ErrImagePull", 59, False),
        ("ErrImagePull", 60, True),
        ("ImagePullBackOff", 60, True),
        ("ErrImageNeverPull", 0, True),
        ("InvalidImageName", 0, True),
        ("CreateContainerConfigError", 59, False),
        ("CreateContainerConfigError", 60, True),
    ],
)
def test_a_container_that_waits_is_given_up_when_waiting_is_of_no_use(
    reason: str, seconds: float, is_over: bool
) -> None:
    states = container(waiting={"reason": reason, "message": "the details"})
    scheduled = {"type": "PodScheduled", "status": "True"}
    it = read(phase="Pending", containerStatuses=states, conditions=[scheduled])
    ended = after(it, seconds)
    assert (ended is not None) is is_over
    if ended is not None:
        assert f"({reason}): the details" in str(ended)


def test_a_pod_without_a_node_is_given_up_in_time_and_not_before() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available.",
    }
    it = read(phase="Pending", node="", conditions=[condition])
    assert after(it, 299) is None
    assert "0/3 nodes are available." in str(after(it, 300))


def test_a_pod_that_does_not_go_is_lost_with_its_node() -> None:
    it = read(phase="Running", deleted="2026-11-19T12:01:00Z")
    assert after(it, 60 + LOST_SECONDS - 1) is None
    assert "node n1 does not answer" in str(after(it, 60 + LOST_SECONDS))


def test_memory_past_the_limit_is_the_cause_and_not_the_signal() -> None:
    states = container(terminated={"exitCode": 137, "reason": "OOMKilled"})
    ended = after(read(phase="Failed", containerStatuses=states), 5)
    assert ended == Ended(code=-9, oom=True)
