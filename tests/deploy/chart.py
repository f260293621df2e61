"""The chart, rendered by a real Helm."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import yaml

from tests.deploy.cluster_schemas import helm
from tests.servers.parts import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.deploy.cluster_schemas import Manifest

CHART = REPOSITORY / "deploy/helm/penstock"
ALL_FEATURES = REPOSITORY / "deploy/helm/all-features.yaml"
VALUES: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "scaled": ("--set", "keda.enabled=true"),
    "everything": ("-f", str(ALL_FEATURES)),
}
_SETTING = re.compile(r"PENSTOCK_[A-Z0-9_]+")


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(helm()), *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def render(*values: str) -> list[Manifest]:
    done = call("template", "penstock", str(CHART), "--namespace", "penstock", *values)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """The pod templates, by the names of what makes them."""
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        template = spec.get("template") or (spec.get("jobTargetRef") or {}).get("template")
        if template:
            yield f"{manifest['kind']} {manifest['metadata']['name']}", template


def settings_in(manifests: list[Manifest]) -> set[str]:
    return {
        entry["name"]
        for _, pod in pods(manifests)
        for container in pod["spec"]["containers"]
        for entry in container.get("env", ())
        if _SETTING.fullmatch(entry["name"])
    }
