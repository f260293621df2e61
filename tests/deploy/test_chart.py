"""The chart renders what a cluster takes, and names only what Penstock has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
import yaml
from prometheus_client import generate_latest

from penstock.api.app import create_app
from penstock.cli.commands import COMMANDS
from penstock.jobs import scaling
from penstock.jobs.model import JobSpec
from penstock.wiring.control_plane import build_control_plane
from penstock.wiring.job_kinds import default_kinds
from penstock.wiring.settings import Settings
from penstock.worker.attempt import HeldAttempts
from penstock.worker.metrics import WorkerMetrics
from tests.deploy.chart import ALL_FEATURES, CHART, VALUES, call, pods, render, settings_in
from tests.deploy.cluster_schemas import faults
from tests.graph_server.conftest import server
from tests.launchers.conformance import LEAST_RIGHTS
from tests.servers.parts import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.deploy.cluster_schemas import Manifest
    from tests.graph_server.server import GraphServer

__all__ = ["server"]
SETTINGS = REPOSITORY / "docs/reference/settings.md"
OUTSIDE = {"PENSTOCK_SECRETS_DIR", "PENSTOCK_CONFIG"}
"""Where settings are read from, which is no setting itself."""
LABELS = {"pod", "namespace", "penstock_dev_worker"}
"""Given by Prometheus' operator, from the pods."""
_WORDS = re.compile(r"[a-z_][a-z0-9_]*")
_PROMQL = {
    *("sum", "max", "avg", "count", "rate", "increase", "histogram_quantile", "absent", "by"),
    *("le", "s", "m", "h"),
}


@pytest.fixture(scope="module", params=VALUES)
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return render(*VALUES[request.param])


@pytest.fixture(scope="module")
def everything() -> list[Manifest]:
    return render(*VALUES["everything"])


@pytest.mark.parametrize("values", VALUES)
def test_helm_finds_nothing_to_complain_of(values: str) -> None:
    done = call("lint", "--strict", str(CHART), *VALUES[values])
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout
    assert "[ERROR]" not in done.stdout


def test_the_api_server_would_take_every_manifest(manifests: list[Manifest]) -> None:
    refused = {f"{m['kind']} {m['metadata']['name']}": faults(m) for m in manifests}
    assert {name: one for name, one in refused.items() if one} == {}


def test_the_schemas_refuse_unknown_fields_and_wrong_types(everything: list[Manifest]) -> None:
    """A check that cannot fail checks nothing."""
    for kind, path, wrong in (
        ("Deployment", ("spec", "replicaz"), 1),
        ("ScaledObject", ("spec", "triggerz"), []),
        ("ScaledObject", ("spec", "maxReplicaCount"), "many"),
        ("PodMonitor", ("spec", "selectorz"), {}),
        ("HorizontalPodAutoscaler", ("spec", "minReplicas"), "two"),
    ):
        manifest = json.loads(json.dumps(next(m for m in everything if m["kind"] == kind)))
        assert faults(manifest) == []
        manifest[path[0]][path[1]] = wrong
        assert faults(manifest), (kind, path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("controlPlane.replicas=two", "/controlPlane/replicas"),
        ("controlPlane.autoscaling.cpuUtilization=700", "/controlPlane/autoscaling/cpuUtil"),
        ("controlPlane.replica=2", "replica"),
        ("keda.enabled=maybe", "/keda/enabled"),
        ("keda.prometheus=prometheus:9090", "/keda/prometheus"),
        ("workers.export.queues=export", "/workers/export/queues"),
        ("workers.export.queues[0]=x'; DROP TABLE job", "/workers/export/queues/0"),
        ("workers.export.minReplicas=-1", "/workers/export/minReplicas"),
        ("workers.more.maxReplicas=3", "/workers/more"),
        ("image.platform.digest=latest", "/image/platform/digest"),
        ("secrets.shared=Not_A_Name", "/secrets/shared"),
        ("settings.STORAGE_URL=s3://bucket", "STORAGE_URL"),
        ("settings.PENSTOCK_DATABASE_URL=postgresql://user:password@host/db", "/settings"),
        ("migrations.scalingRole=Keda", "/migrations/scalingRole"),
        ("networkPolicies.outbound[0]=everywhere", "/networkPolicies/outbound/0"),
        ("maintenance.scratch=much", "/maintenance/scratch"),
        ("engine.enabled=true", "/engine"),
        ("monitoring.interval=often", "/monitoring/interval"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_its_name(value: str, words: str) -> None:
    done = call("template", "penstock", str(CHART), "--set", value)
    assert done.returncode != 0
    assert words in done.stderr, done.stderr


# security


def test_every_pod_is_restricted_and_its_root_is_read_only(manifests: list[Manifest]) -> None:
    for name, pod in pods(manifests):
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"], name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in spec["containers"]:
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False, name
            assert security["readOnlyRootFilesystem"] is True, name
            assert security["capabilities"] == {"drop": ["ALL"]}, name
            assert container["resources"]["limits"]["memory"], name


def test_only_the_control_plane_has_rights_and_a_token(manifests: list[Manifest]) -> None:
    tokens = [name for name, pod in pods(manifests) if pod["spec"]["automountServiceAccountToken"]]
    assert tokens == ["Deployment penstock-control-plane"]
    for binding in (m for m in manifests if m["kind"] in ("RoleBinding", "ClusterRoleBinding")):
        assert [s["name"] for s in binding["subjects"]] == ["penstock-control-plane"]


def test_secrets_of_the_registry_reach_the_pods_of_graphs(everything: list[Manifest]) -> None:
    """The launcher makes these pods; they have what their account has."""
    accounts = {m["metadata"]["name"]: m for m in everything if m["kind"] == "ServiceAccount"}
    assert accounts["penstock-graph-server"]["imagePullSecrets"] == [{"name": "registry"}]
    for _, pod in pods(everything):
        assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_the_rights_are_the_least_that_launcher_and_deletion_cost_need(
    everything: list[Manifest],
) -> None:
    def rights(manifests: list[Manifest]) -> dict[str, set[str]]:
        return {
            resource: set(rule["verbs"])
            for manifest in manifests
            if manifest["kind"] in ("Role", "ClusterRole")
            for rule in manifest["rules"]
            for resource in (
                f"{group}/{r}" for group in rule["apiGroups"] for r in rule["resources"]
            )
        }

    assert rights(render("--set", "launcher.kubernetes=false")) == {"/pods": {"list", "patch"}}
    launcher = defaultdict[str, set[str]](set)
    for verb, resource in LEAST_RIGHTS:
        launcher[f"/{resource}"].add(verb)
    assert rights(everything) == launcher | {
        "metrics.k8s.io/pods": {"get"},
        "authentication.k8s.io/tokenreviews": {"create"},
    }


def test_workers_never_see_the_database_and_no_secret_is_in_an_environment(
    manifests: list[Manifest],
) -> None:
    for name, pod in pods(manifests):
        text = json.dumps(pod)
        if "worker" in name or "maintenance" in name:
            assert "penstock-control-plane" not in json.dumps(pod["spec"]["volumes"]), name
        assert "secretKeyRef" not in text, name
        assert "envFrom" not in text, name


def test_every_pod_is_under_a_network_policy_of_its_own(manifests: list[Manifest]) -> None:
    policies = [m["spec"] for m in manifests if m["kind"] == "NetworkPolicy"]
    for name, pod in pods(manifests):
        labels = pod["metadata"]["labels"].items()
        chosen = [p for p in policies if p["podSelector"]["matchLabels"].items() <= labels]
        assert len(chosen) == 2, name  # the one that refuses all, and the one that allows some


def test_only_the_control_plane_is_reachable_from_outside(manifests: list[Manifest]) -> None:
    for manifest in manifests:
        if manifest["kind"] == "NetworkPolicy" and "ingress-nginx" in json.dumps(manifest):
            assert manifest["metadata"]["name"] == "penstock-control-plane"
        if manifest["kind"] == "Service":
            assert manifest["spec"].get("type", "ClusterIP") == "ClusterIP"


@pytest.mark.parametrize(
    ("values", "people"),
    [
        ((), "http://penstock-control-plane.penstock.svc:8080"),
        (("--set", "controlPlane.ingress.enabled=true"), "https://penstock.example.com"),
        (("--set", "controlPlane.settings.PENSTOCK_URL=https://gate"), "https://gate"),
    ],
)
def test_people_get_the_address_of_the_ingress_and_pods_one_inside(
    values: tuple[str, ...], people: str
) -> None:
    """An instance's address is made of PENSTOCK_URL, and nobody outside finds a service."""
    environments = {
        name: {entry["name"]: entry.get("value") for entry in pod["spec"]["containers"][0]["env"]}
        for name, pod in pods(render(*values))
    }
    inside = "http://penstock-control-plane.penstock.svc:8080"
    own = environments.pop("Deployment penstock-control-plane")
    assert own["PENSTOCK_URL"] == people
    assert own["PENSTOCK_KUBERNETES_URL"] == inside
    workers = [e["PENSTOCK_URL"] for e in environments.values() if "PENSTOCK_WORKER_QUEUES" in e]
    assert workers
    assert set(workers) == {inside}


def test_a_worker_gets_more_time_than_its_drain_takes(manifests: list[Manifest]) -> None:
    for name, pod in pods(manifests):
        environment = {
            e["name"]: e.get("value") for e in pod["spec"]["containers"][0].get("env", ())
        }
        if drain := environment.get("PENSTOCK_WORKER_GRACE_SECONDS"):
            assert pod["spec"]["terminationGracePeriodSeconds"] >= int(drain) + 10, name


# what the manifests name exists


def test_every_setting_exists(manifests: list[Manifest]) -> None:
    names_of_ours = set(re.findall(r"`(PENSTOCK_[A-Z0-9_]+)`", SETTINGS.read_text())) | OUTSIDE
    assert settings_in(manifests) <= names_of_ours
    named = set(re.findall(r"\b(penstock_[a-z_]+)\b", (CHART / "values.yaml").read_text()))
    assert {name.upper() for name in named} <= names_of_ours


def test_every_command_exists(manifests: list[Manifest]) -> None:
    words = {command.words for command in COMMANDS}
    for name, pod in pods(manifests):
        container = pod["spec"]["containers"][0]
        if container["image"].startswith("localhost/penstock:"):
            assert container["args"][0] in words, name


def test_every_queue_has_workers() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    served = {queue for worker in values["workers"].values() for queue in worker["queues"]}
    assert {kind.queue for kind in default_kinds()} <= served | {"maintenance"}


def queries(manifests: list[Manifest]) -> Iterator[str]:
    for manifest in manifests:
        for trigger in (manifest.get("spec") or {}).get("triggers", ()):
            if trigger["type"] == "postgresql":
                yield trigger["metadata"]["query"]


async def test_the_role_of_keda_can_ask_every_query(
    everything: list[Manifest], database: str
) -> None:
    connection = await asyncpg.connect(database)
    try:
        await scaling.grant(database, "keda_chart")
        await connection.execute("SET SESSION AUTHORIZATION keda_chart")
        asked = list(queries(everything))
        assert len(asked) == 6
        for query in asked:
            assert await connection.fetchval(query) == 0
        await connection.execute("RESET SESSION AUTHORIZATION")
        await connection.execute("DROP OWNED BY keda_chart; DROP ROLE keda_chart")
    finally:
        await connection.close()


def test_running_and_parked_jobs_hold_their_workers(everything: list[Manifest]) -> None:
    for manifest in everything:
        if manifest["kind"] == "ScaledObject":
            assert "sum(unfinished)" in manifest["spec"]["triggers"][0]["metadata"]["query"]
        if manifest["kind"] == "ScaledJob":
            assert "sum(ready + running)" in manifest["spec"]["triggers"][0]["metadata"]["query"]
            assert manifest["spec"]["scalingStrategy"] == {"strategy": "default"}
            assert manifest["spec"]["pollingInterval"] == 30


def expressions(manifests: list[Manifest]) -> Iterator[str]:
    for manifest in manifests:
        for trigger in (manifest.get("spec") or {}).get("triggers", ()):
            if trigger["type"] == "prometheus":
                yield trigger["metadata"]["query"]
        if manifest["kind"] == "PrometheusRule":
            for group in manifest["spec"]["groups"]:
                yield from (rule["expr"] for rule in group["rules"])
        for name, text in (manifest.get("data") or {}).items():
            if name == "penstock.json":
                panels = json.loads(text)["panels"]
                yield from (t["expr"] for panel in panels for t in panel["targets"])


async def test_every_metric_and_label_exists(
    everything: list[Manifest], database: str, server: GraphServer
) -> None:
    worker = WorkerMetrics()
    worker.watch(HeldAttempts(), lambda: 0.0)
    worker.completed("probe", "succeeded")
    worker.lasted("probe", 1.0)
    worker.rows("probe", 1)
    settings = Settings(service_token="a-service-token-of-tests")
    async with build_control_plane(settings, database) as services:
        create_app(services)
        await services.store.enqueue([JobSpec(kind="probe", payload={})])
        await services.store.exchange([], "worker", ["default"], 1)
        plane = generate_latest(services.registry).decode()
        declared = _declared(services.registry)
    graph = (await server.http.get("/metrics")).text
    texts = (plane, worker.text().decode(), graph)
    names_of_ours = {name for text in texts for name in _names(text)} | declared
    exprs = list(expressions(everything))
    assert len(exprs) > 25
    for expression in exprs:
        words = set(_WORDS.findall(re.sub(r'"[^"]*"|\[\d+[smh]\]', "", expression)))
        assert words - _PROMQL - LABELS <= names_of_ours, expression


def _names(text: str) -> set[str]:
    """Names of samples, and of their labels."""
    labels = set(re.findall(r'[{,]([a-z_]+)="', text))
    return {match[1] for match in re.finditer(r"^([a-z_]+)[ {]", text, re.MULTILINE)} | labels


def _declared(registry: Any) -> set[str]:
    """Names of metrics that have no sample before something happened, and of their labels."""
    names: set[str] = set(registry._names_to_collectors)
    for collector in set(registry._names_to_collectors.values()):
        names.update(getattr(collector, "_labelnames", ()))
    return names


# generated files


def test_the_kustomize_base_is_what_the_chart_gives() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.manifests", "--check"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_overlay_leaves_no_placeholder_of_an_image_or_a_storage() -> None:
    """Images in settings are no images to Kustomize."""
    folder = REPOSITORY / "deploy/kustomize"
    overlay = yaml.safe_load((folder / "overlays/production/kustomization.yaml").read_text())
    images = {image["name"] for image in overlay["images"]}
    replaced = {
        (container["name"], entry["name"])
        for patch in overlay["patches"]
        for container in _containers(yaml.safe_load(patch["patch"]))
        for entry in container.get("env", ())
    }
    base = [one for one in yaml.safe_load_all((folder / "base/penstock.yaml").read_text()) if one]
    containers = [container for _, pod in pods(base) for container in _containers(pod)]
    assert {container["image"].partition(":")[0] for container in containers} == images
    placeholders = {
        (container["name"], entry["name"])
        for container in containers
        for entry in container.get("env", ())
        if entry.get("value", "").startswith(("localhost/", "s3://bucket"))
    }
    assert placeholders == replaced


def _containers(manifest: Manifest) -> list[Any]:
    spec = manifest["spec"]
    containers: list[Any] = spec.get("template", manifest)["spec"].get("containers", [])
    return containers


def test_the_values_of_all_features_are_in_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert yaml.safe_load(ALL_FEATURES.read_text()).keys() <= values.keys()


def test_jupyterhub_values_name_the_images_and_settings_that_exist() -> None:
    text = (REPOSITORY / "deploy/jupyterhub/values.yaml").read_text()
    values = yaml.safe_load(text)
    [sync] = values["singleuser"]["initContainers"]
    assert sync["name"] == "notebook-sync"
    assert sync["securityContext"]["runAsNonRoot"] is True
    names_of_ours = set(re.findall(r"`(PENSTOCK_[A-Z0-9_]+)`", SETTINGS.read_text()))
    assert set(re.findall(r"PENSTOCK_[A-Z_]+", text)) <= names_of_ours | {"PENSTOCK_API_KEY"}
