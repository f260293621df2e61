"""One `penstock up` for everything that is shown to people, in a home and on a port of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def running(short_dir: Path) -> Iterator[Cli]:
    running = Cli(short_dir / "shown")
    started = running("up", "--detach", "--port", "0")
    assert started.code == 0, started.err
    yield running
    running("down")
