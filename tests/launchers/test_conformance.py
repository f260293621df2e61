"""One suite for every launcher."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

import pytest

from penstock.launchers.contract import Ended, Handle
from tests.launchers.conformance import GIB, KINDS, RUN, order, place_of, python

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.launchers.contract import Launcher
    from tests.launchers.conformance import Place

OTHER = Handle(instance_id=8, launch=3)
PATIENCE = 60.0
SLEEPER = python(
    "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    "print('up', flush=True)\ntime.sleep(600)"
)
STUBBORN = python(
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('up', flush=True)\ntime.sleep(600)"
)
FAILING = python("print('no luck', flush=True)\nraise SystemExit(3)")
SHOW = python(
    "import json, os\nbefore = dict(os.environ)\n"
    "from penstock.graph_server import settings\nstart = settings.load()\n"
    "secrets = [start.instance.token.get_secret_value(), start.storage.secret_access_key]\n"
    "print(json.dumps([start.instance.id, start.instance.backend, start.instance.memory_bytes,"
    " start.instance.cpu, start.plane_url, start.storage_url, secrets,"
    " [s for s in secrets if s in before.values()], str(start.instance.dir)]))"
)


@pytest.fixture(params=KINDS)
async def place(
    request: pytest.FixtureRequest, short_dir: Path, tmp_path: Path
) -> AsyncIterator[Place]:
    folder = short_dir / f"c{abs(hash(tmp_path)) % 10**8}"
    async with place_of(request.param, folder) as there:
        yield there


async def prints(launcher: Launcher, text: str, handle: Handle = RUN) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in (log := await launcher.logs(handle, tail=10_000)):
        assert time.monotonic() < deadline, f"waited in vain for {text!r} in {log!r}"
        await asyncio.sleep(0.05)


async def over(launcher: Launcher, handle: Handle = RUN) -> Ended:
    return await asyncio.wait_for(launcher.wait(handle), PATIENCE)


async def test_a_run_is_begun_once_however_often_and_by_whomever_it_is_asked_for(
    place: Place,
) -> None:
    first, second = await place.launcher(*SLEEPER), await place.launcher(*SLEEPER)
    await asyncio.gather(*(launcher.start(order()) for launcher in (first, second) * 3))
    [run] = await second.list()
    assert (run.handle, run.alive) == (RUN, True)
    await prints(first, "up\n")
    assert await second.logs(RUN, tail=100) == "up\n"
    assert first.place == second.place


async def test_a_run_that_is_over_is_not_begun_again(place: Place) -> None:
    launcher = await place.launcher(*FAILING)
    await launcher.start(order())
    assert (await over(launcher)).code == 3
    await launcher.start(order())
    process = await launcher.inspect(RUN)
    assert process is not None
    assert process.ended is not None
    assert process.ended.code == 3
    assert await launcher.logs(RUN, tail=100) == "no luck\n"


async def test_a_launcher_that_comes_later_knows_what_runs_and_how_the_rest_ended(
    place: Place,
) -> None:
    await (await place.launcher(*SLEEPER)).start(order())
    await (await place.launcher(*FAILING)).start(order(OTHER))
    later = await place.launcher(*SLEEPER)
    assert (await over(later, OTHER)).code == 3
    runs = {run.handle: run for run in await later.list()}
    assert set(runs) == {RUN, OTHER}
    assert runs[RUN].alive
    assert not runs[OTHER].alive


async def test_a_server_is_asked_to_end_and_gets_its_grace(place: Place) -> None:
    launcher = await place.launcher(*SLEEPER)
    await launcher.start(order())
    await prints(launcher, "up")
    waiting = asyncio.create_task(over(launcher))
    await launcher.stop(RUN, grace=30)
    process = await launcher.inspect(RUN)
    assert process is None or process.ended == Ended(code=0)
    assert (await waiting).code in (0, None)


async def test_a_server_that_does_not_hear_is_killed_after_its_grace(place: Place) -> None:
    launcher = await place.launcher(*STUBBORN)
    await launcher.start(order())
    await prints(launcher, "up")
    await launcher.stop(RUN, grace=1)
    process = await launcher.inspect(RUN)
    assert process is None or process.ended == Ended(code=-9)


async def test_what_is_removed_is_unknown_and_stays_so(place: Place) -> None:
    launcher = await place.launcher(*SLEEPER)
    await launcher.start(order())
    for _ in range(2):
        await launcher.stop(RUN, grace=0)
        await launcher.remove(RUN)
        assert await launcher.inspect(RUN) is None
        assert await launcher.list() == []
    assert await launcher.logs(RUN, tail=100) == ""
    assert await launcher.usage(RUN) is None


async def test_the_next_launch_of_an_instance_does_not_meet_the_last_one(place: Place) -> None:
    launcher = await place.launcher(*SLEEPER)
    await launcher.start(order())
    await prints(launcher, "up")
    stopping = asyncio.create_task(launcher.stop(RUN, grace=30))
    again = Handle(instance_id=RUN.instance_id, launch=2)
    await launcher.start(order(again))
    await prints(launcher, "up", again)
    await stopping
    await launcher.remove(RUN)
    [run] = await launcher.list()
    assert (run.handle, run.alive) == (again, True)


async def test_a_server_is_told_what_it_needs_and_secrets_are_not_in_its_environment(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PENSTOCK_DATABASE_URL", "PENSTOCK_SECRET_KEY", "PENSTOCK_SERVICE_TOKEN"):
        monkeypatch.setenv(name, "postgresql://canary")
    launcher = await place.launcher(*SHOW)
    await launcher.start(order(cpu=1, memory=GIB))
    ended = await over(launcher)
    text = await launcher.logs(RUN, tail=10_000)
    assert ended.code == 0, text
    *settings, secrets, shown, folder = json.loads(text)
    assert settings == [7, "ladybug", GIB, 1, "http://127.0.0.1:1", "file:///there"]
    assert secrets == ["instance-token", "storage-secret"]
    assert shown == []
    assert folder.startswith("/")


async def test_the_tail_of_a_log_is_its_end(place: Place) -> None:
    launcher = await place.launcher(*python("for i in range(3000): print(i)"))
    await launcher.start(order())
    await over(launcher)
    assert await launcher.logs(RUN, tail=10) == "2998\n2999\n"


async def test_limits_change_during_a_run_where_the_launcher_says_so(place: Place) -> None:
    launcher = await place.launcher(*SLEEPER)
    await launcher.start(order())
    await prints(launcher, "up")
    if launcher.capabilities.resize:
        await launcher.resize(RUN, cpu_cores=2, memory_bytes=2 * GIB)
    process = await launcher.inspect(RUN)
    assert process is not None
    assert process.alive


async def test_a_run_that_nobody_started_is_over_for_whoever_waits(place: Place) -> None:
    launcher = await place.launcher(*SLEEPER)
    assert await launcher.inspect(RUN) is None
    assert (await over(launcher)).code is None
