"""Runs the conformance cases on every backend, each in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest

from penstock.graphdb.registry import BACKENDS, Opening, open_engine
from penstock.kit.errors import InvalidInput
from tests.graphdb.cases import CASES
from tests.servers.falkor import falkordb

REPOSITORY = Path(__file__).parents[2]


@cache
def outcomes(backend: str) -> dict[str, str]:
    """Each case's error, empty for none; cases that end a database's life have a process each."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        with falkordb(folder) if backend == "falkordb" else nullcontext("") as url:
            together = [case for case in CASES if not case.startswith("fatal")]
            alone = [[case] for case in CASES if case.startswith("fatal")]
            groups = (
                [[*together, *(case for [case] in alone)]]
                if backend == "falkordb"
                else [together, *alone]
            )
            return {
                case: error
                for group in groups
                for case, error in _run(backend, folder, url, group).items()
            }


def _run(backend: str, folder: Path, url: str, cases: list[str]) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.graphdb.child", backend, str(folder), url, *cases]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False
    )
    errors = {line["case"]: line["error"] for line in map(json.loads, done.stdout.splitlines())}
    return {
        case: errors.get(case, f"The process ended with {done.returncode}: {done.stderr[-2000:]}")
        for case in cases
    }


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_conformance(backend: str, case: str) -> None:
    if error := outcomes(backend)[case]:
        pytest.fail(error)


def test_an_unknown_backend_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no graph backend 'oracle'"):
        open_engine("oracle", Opening(folder=tmp_path, memory_bytes=1, threads=1))
