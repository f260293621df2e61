"""`make abuse`: normal users, alone and then beside 200 hostile connections of ordinary accounts.

The users' p99 may become five times what it was; none of their requests may fail, and nothing may
restart. `ARGS=0.1` is for a tenth of the time and writes no ledger.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
from rich.console import Console

from bench import users
from bench.abuse import normal_users
from bench.api.asking import Asker
from bench.figures import Figure, figure, publish, quantile, show
from bench.folder import temporary_folder
from bench.load import places
from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Sequence

QUIET_SECONDS = 30.0
ABUSE_SECONDS = 120.0
SETTLE_SECONDS = 5.0
MEMORY_LOOK_SECONDS = 0.5
SETTINGS = {"PENSTOCK_CONNECTIONS_EXEMPT": "127.0.0.1", "PENSTOCK_LOCAL_ONLY": "false"}
"""The users' address is exempt. The attackers have another, which is counted as any address is."""
ATTACKER, ACCOMPLICE = "mallory@example.com", "trudy@example.com"
say = Console(stderr=True).print


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacker:
    keys: str
    graph: str


async def main(arguments: Sequence[str]) -> int:
    logging.configure(level="ERROR")
    part = float(arguments[0]) if arguments else 1.0
    # Whether only this machine may call is read from the environment of whoever starts the stack.
    os.environ.update(SETTINGS)
    with temporary_folder() as folder:
        async with places.plane(folder, SETTINGS) as place:
            figures = await _measure(place, part)
    return show("abuse", figures) if arguments else publish("abuse", figures)


async def _measure(place: places.Place, part: float) -> dict[str, Figure]:
    attacker = await _attacker(place)
    await places.settled(place)
    await normal_users.measure(place, SETTLE_SECONDS)
    quiet = await normal_users.measure(place, QUIET_SECONDS * part)
    attackers = await _attack(place, attacker, ABUSE_SECONDS * part)
    megabytes: list[float] = []
    looking = asyncio.create_task(_look_at_memory(place.trees["plane"], megabytes))
    abused = await normal_users.measure(place, ABUSE_SECONDS * part)
    outcomes = json.loads((await attackers.communicate())[0])
    looking.cancel()
    say(f"what the attackers got: {outcomes}")
    for path, times in abused.of_paths.items():
        alone = quantile(quiet.of_paths[path], 0.99)
        say(f"{path}: p99 {alone:.0f} ms alone, {quantile(times, 0.99):.0f} ms abused")
    say(f"errors of users: {sorted(set(quiet.errors + abused.errors))[:10]}")
    before, during = (quantile(those.milliseconds, 0.99) for those in (quiet, abused))
    forbidden = sum(count for name, count in outcomes.items() if name in ("401", "403"))
    if forbidden * 2 > sum(outcomes.values()):
        raise SystemExit("The attackers were refused as strangers; this measures nothing.")
    restarted = sum(not psutil.pid_exists(pid) for pid in place.trees.values())
    return {
        "users_p99_alone": figure(before, "ms"),
        "users_p99_abused": figure(during, "ms"),
        "users_p99_times": figure(during / before, "x", "<= 5"),
        "users_p50_abused": figure(quantile(abused.milliseconds, 0.5), "ms"),
        "users_requests_abused": figure(len(abused.milliseconds), "requests"),
        "users_errors": figure(len(quiet.errors) + len(abused.errors), "requests", "<= 0"),
        "restarts": figure(restarted, "processes", "<= 0"),
        "plane_memory_peak": figure(max(megabytes), "MB", "<= 1500"),
        **{
            f"attackers_{name}": figure(count, "answers" if name.isdigit() else "connections")
            for name, count in sorted(outcomes.items())
        },
    }


async def _attacker(place: places.Place) -> Attacker:
    """An analyst with a graph of their own, made from a source that an operator shared."""
    keys = [
        await users.key(place.url, place.operator_token, name, "analyst")
        for name in (ATTACKER, ACCOMPLICE)
    ]
    async with Asker(place.url, place.operator_token) as ask:
        [source] = await ask("GET", "/api/data-sources")
        await ask("PUT", f"/api/data-sources/{source['id']}/shares/{ATTACKER}", {"role": "use"})
        [snapshot] = await ask("GET", "/api/snapshots")
    async with Asker(place.url, keys[0]) as ask:
        body = {"snapshot_id": snapshot["id"], "name": "theirs"}
        instance = await places.running_instance(ask, body)
    return Attacker(keys=",".join(keys), graph=f"/wrapper/{instance['url_slug']}")


async def _attack(
    place: places.Place, attacker: Attacker, seconds: float
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.abuse.attackers",
        place.url,
        attacker.keys,
        attacker.graph,
        str(seconds),
        stdout=asyncio.subprocess.PIPE,
    )


async def _look_at_memory(pid: int, megabytes: list[float]) -> None:
    process = psutil.Process(pid)
    while True:
        megabytes.append(process.memory_info().rss / 1024**2)
        await asyncio.sleep(MEMORY_LOOK_SECONDS)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
