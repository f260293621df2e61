"""A whole Penstock in a home of its own, driven as a person would: by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from penstock.cli.documents import DOCUMENTS
from tests.cli.schema import check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Cli:
    """`penstock` with a home; every call is a process of its own. What it prints as JSON must be as
    promised."""

    home: Path

    def __call__(self, *arguments: str, timeout: float = 120, **environment: str) -> Ran:
        command = [sys.executable, "-m", "penstock.cli", *arguments]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        done = subprocess.run(
            command,
            env={
                **clean,
                "PENSTOCK_HOME": str(self.home),
                "NO_COLOR": "1",
                "COLUMNS": "200",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout, done.stderr)
        if "--json" in arguments and ran.out:
            check(ran.json, DOCUMENTS.get(" ".join(arguments[:2])) or DOCUMENTS[arguments[0]])
        return ran


@pytest.fixture
def cli(short_dir: Path, tmp_path: Path) -> Iterator[Cli]:
    """The command line with an empty home; processes left running are stopped after the test."""
    new_cli = Cli(short_dir / tmp_path.name / "home")
    yield new_cli
    if new_cli.home.exists():
        new_cli("down")


@pytest.fixture(scope="module")
def up(short_dir: Path, request: pytest.FixtureRequest) -> Iterator[Cli]:
    """A running Penstock, shared by the tests of a module."""
    running = Cli(short_dir / request.module.__name__.rpartition(".")[2])
    started = running("up", "--detach", "--port", "0", "--json")
    assert started.code == 0, started.err
    yield running
    assert running("down", "--json").json["stopped"] is True
