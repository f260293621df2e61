"""Faults, each drawn from the schedule's seed and let loose at its moment."""

from __future__ import annotations

import asyncio
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import TYPE_CHECKING

import asyncpg
import nats.errors

from penstock.kit.postgres import Shutdown
from tests.chaos.nats_faults import NATS_FAULTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from tests.chaos.world import World

LEASE = 2.0
WINDOW = 0.8
_TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'penstock'"
_RELOAD = "SELECT pg_reload_conf()"


async def kill_worker(world: World, rng: Random) -> None:
    if workers := world.of_role("worker"):
        world.signal(rng.choice(workers), SIGKILL)


async def stop_worker(world: World, rng: Random) -> None:
    if workers := world.of_role("worker"):
        world.signal(rng.choice(workers), SIGTERM)


async def freeze_worker(world: World, rng: Random) -> None:
    """Past its lease, then awake again: what it then writes must be refused."""
    awake = world.of_role("worker")
    if len(awake) < 2:
        return
    member = rng.choice(awake)
    member.frozen = True
    world.signal(member, SIGSTOP)
    await asyncio.sleep(LEASE + rng.uniform(0.5, 1.5))
    if member.frozen:
        member.frozen = False
        world.signal(member, SIGCONT)


async def cut_connections(world: World, _rng: Random) -> None:
    world.proxy.cut()


async def swallow_replies(world: World, rng: Random) -> None:
    world.proxy.swallow(rng.randint(1, 6))


async def slow_network(world: World, rng: Random) -> None:
    world.proxy.slow(rng.uniform(0.02, 0.2))
    await asyncio.sleep(rng.uniform(0.2, 0.6))
    world.proxy.slow(0)


async def kill_plane(world: World, rng: Random) -> None:
    if planes := world.of_role("plane"):
        world.signal(rng.choice(planes), rng.choice([SIGKILL, SIGTERM]))


async def drop_backends(world: World, _rng: Random) -> None:
    await _execute(world, _TERMINATE)


async def kill_listeners(world: World, _rng: Random) -> None:
    await _execute(world, f"{_TERMINATE} AND query ILIKE 'LISTEN%'")


async def demote_database(world: World, rng: Random) -> None:
    """For a moment the server takes no writes, on any of its connections, as one that lost its
    place."""
    await _execute(world, "ALTER SYSTEM SET default_transaction_read_only = on", _RELOAD)
    try:
        await asyncio.sleep(rng.uniform(0.1, 0.8))
    finally:
        await _promote(world)


async def _promote(world: World) -> None:
    """Until it is done: other faults may have the server down just now."""
    while True:
        try:
            return await _execute(
                world, "ALTER SYSTEM RESET default_transaction_read_only", _RELOAD
            )
        except (OSError, asyncpg.PostgresError, asyncpg.InternalClientError):
            await asyncio.sleep(0.1)


async def _execute(world: World, *statements: str) -> None:
    connection = await asyncpg.connect(world.cluster.dsn("postgres"))
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def restart_database(world: World, _rng: Random) -> None:
    await world.cluster.restart(Shutdown.IMMEDIATE)


FAULTS: dict[Callable[[World, Random], Awaitable[None]], int] = {
    kill_worker: 22,
    stop_worker: 14,
    freeze_worker: 26,
    cut_connections: 12,
    swallow_replies: 14,
    slow_network: 5,
    kill_plane: 6,
    drop_backends: 5,
    kill_listeners: 4,
    demote_database: 4,
    restart_database: 2,
}


async def rage(world: World, rng: Random) -> list[str]:
    """One schedule's faults; each at its own moment of the window."""
    faults = FAULTS | NATS_FAULTS if world.with_nats else FAULTS
    drawn = rng.choices(list(faults), list(faults.values()), k=rng.randint(1, 3))
    moments = [rng.uniform(0, WINDOW) for _ in drawn]
    seeds = [rng.random() for _ in drawn]
    await asyncio.gather(
        *(_at(m, f, world, s) for m, f, s in zip(moments, drawn, seeds, strict=True))
    )
    return [f.__name__ for f in drawn]


async def _at(
    moment: float, fault: Callable[[World, Random], Awaitable[None]], world: World, seed: float
) -> None:
    from random import Random

    await asyncio.sleep(moment)
    try:
        await fault(world, Random(seed))
    except (OSError, asyncpg.PostgresError, asyncpg.InternalClientError, nats.errors.Error):
        return  # the database or NATS was down already: another fault came first
