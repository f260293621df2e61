from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_the_demo_kills_and_freezes_workers_and_loses_nothing(cli: Cli) -> None:
    played = cli("demo", "--json", timeout=240)
    assert played.code == 0, played.err
    story = played.json
    assert story["ok"]
    assert story["ended_once"] == story["jobs"]
    assert story["killed"]["held"]
    assert story["frozen"]["held"]
    assert story["stale_writes_refused"] >= 1
