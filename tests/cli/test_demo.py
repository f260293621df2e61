from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_the_demo_loses_no_job_to_killed_and_frozen_workers_and_finds_the_planted_rings(cli: Cli) -> None:
    played = cli("demo", "--json", timeout=240)
    assert played.code == 0, played.err
    assert played.json["ok"]
    story = played.json["storm"]
    assert story["ended_once"] == story["jobs"]
    assert story["killed"]["held"]
    assert story["frozen"]["held"]
    assert story["stale_writes_refused"] >= 1
    rings = played.json["rings"]["found"]
    assert [ring["accounts"] for ring in rings] == [8, 6, 5]
    assert all(ring["device"] for ring in rings)
    books = played.json["books"]
    assert books["rows"] == {"left": 5000, "right": 5160}
    assert books["rules"] == {"to the cent": 3950, "bank charges taken off": 333, "paid in parts": 250}
    assert books["breaks"]["left"]["no_key"] == 100
    lake = played.json["lake"]
    assert (lake["before"]["files"], lake["after"]["files"]) == (40, 1)
    assert lake["before"]["total"] == lake["after"]["total"]
