"""Write the Kustomize base from the Helm chart, so that there is one source.

python -m tools.manifests          write deploy/kustomize/base
python -m tools.manifests --check  fail when it is out of date
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.deploy.cluster_schemas import HELM, helm
from tests.servers.parts import Missing

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "deploy" / "helm" / "penstock"
TARGET = ROOT / "deploy" / "kustomize" / "base" / "penstock.yaml"
HEAD = "# Written by `make manifests` from deploy/helm/penstock; change that instead.\n"


def render() -> str:
    """The chart with its default values; of Helm's own annotations only hooks are kept."""
    command = [str(helm()), "template", "penstock", str(CHART), "--namespace", "penstock"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = (line.rstrip() for line in done.stdout.splitlines())
    content = (line for line in lines if line and not line.startswith("# Source:"))
    return HEAD + "\n".join(content) + "\n"


def main(arguments: list[str]) -> int:
    if not HELM.present():
        try:
            HELM.fetch()
        except Missing as e:
            sys.stderr.write(f"{e}\n")
            return 1
    text = render()
    if arguments == ["--check"]:
        if not TARGET.is_file() or TARGET.read_text() != text:
            sys.stderr.write("deploy/kustomize/base is out of date: make manifests\n")
            return 1
        return 0
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
