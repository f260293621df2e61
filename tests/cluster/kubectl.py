"""kubectl as a user of the cluster runs it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.cluster.failures import ClusterFailed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.deploy.cluster_schemas import Manifest

_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    program: Path
    kubeconfig: Path

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """What it prints; raises with what it complains of."""
        done = self._run(arguments, stdin)
        if done.returncode != 0:
            raise ClusterFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()[-1000:]}")
        return done.stdout

    def works(self, *arguments: str) -> bool:
        return self._run(arguments, None).returncode == 0

    def apply(self, *manifests: Manifest) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self("apply", "-f", "-", stdin=json.dumps(items))

    def get(self, *arguments: str) -> Any:
        """One object, or a list of them."""
        document = json.loads(self("get", *arguments, "-o", "json"))
        return document["items"] if document["kind"].endswith("List") else document

    def _run(
        self, arguments: tuple[str, ...], stdin: str | None
    ) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", *arguments]
        try:
            return subprocess.run(
                command, capture_output=True, text=True, input=stdin, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise ClusterFailed(f"kubectl {' '.join(arguments)} hangs") from None
