"""Where a page's blocks run: a folder of its own, one shell environment and one Python for all of
them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.docs.pages import ROOT, Block

if TYPE_CHECKING:
    from types import TracebackType

    from tests.cli.conftest import Cli

# Reads one JSON string a line and runs it; what it says of it is the last line, after a NUL.
LOOP = """
import json, sys, traceback
scope = {"__name__": "__main__"}
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "<block>", "exec"), scope)
        said = ""
    except BaseException:
        said = traceback.format_exc()
    sys.stderr.flush()
    print("\\0" + json.dumps(said), flush=True)
"""
CURL = "fail-with-body\nsilent\nshow-error\n"
PATIENCE = 180


class Sandbox:
    """`python -c` and `bash -c`, with `penstock`, the examples and a running control plane in
    reach."""

    def __init__(self, folder: Path, running: Cli) -> None:
        self.folder = folder
        for name in ("examples", "docs"):
            (folder / name).symlink_to(ROOT / name)
        (folder / ".venv").symlink_to(Path(sys.prefix))
        (folder / ".penstock").symlink_to(running.home)
        (folder / ".curlrc").write_text(CURL)
        self._environment = self._first(running)
        self._python: subprocess.Popen[str] | None = None

    def _first(self, running: Cli) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PENSTOCK_")}
        address = json.loads((running.home / "run" / "up.json").read_text())["url"]
        return clean | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PENSTOCK_HOME": str(running.home),
            "PENSTOCK_URL": address,
            "PENSTOCK_API_KEY": (running.home / "secrets" / "operator_token").read_text().strip(),
            "NO_COLOR": "1",
            "PIP_NO_INDEX": "1",  # no page changes the environment that it is tried in
            "PIP_FIND_LINKS": "",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._python is not None:
            self._python.communicate(timeout=PATIENCE)

    def bash(self, block: Block) -> None:
        """What it exports holds for the blocks after it."""
        variables = self.folder / ".environment"
        script = f"set -euo pipefail\n{block.text}\nenv -0 > {variables}\n"
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ran.returncode == 0, (
            f"{block.place} exits with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        )
        self._environment = dict(
            line.split("=", 1) for line in variables.read_text().split("\0") if "=" in line
        )

    def python(self, block: Block) -> None:
        """What it defines is there in the blocks after it."""
        if self._python is None:
            self._python = subprocess.Popen(
                [sys.executable, "-c", LOOP],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        self._python.stdin.write(json.dumps(block.text) + "\n")
        self._python.stdin.flush()
        line_out = next((line for line in self._python.stdout if line.startswith("\0")), None)
        assert line_out is not None, f"{block.place} ended its Python"
        wrong = json.loads(line_out[1:])
        assert not wrong, f"{block.place}\n{wrong}"
