"""Faults of NATS, for a chaos run in which it announces the jobs."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import nats

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from random import Random

    from nats.js.client import JetStreamContext

    from tests.chaos.world import World

STREAMS = ("penstock-stage", "penstock-exec")


async def kill_nats(world: World, rng: Random) -> None:
    """For a moment, or for longer than a control plane waits for an answer."""
    if world.nats is not None and world.nats.running:
        world.nats.kill()
        await asyncio.sleep(rng.choice([0.1, 1.0, 4.0]))
        await asyncio.to_thread(world.nats.start)


async def delete_streams(world: World, rng: Random) -> None:
    async with _jetstream(world) as js:
        for stream in STREAMS:
            if rng.random() < 0.7:
                await js.delete_stream(stream)


async def purge_stream(world: World, _rng: Random) -> None:
    async with _jetstream(world) as js:
        await js.purge_stream("penstock-exec")


async def fill_stream(world: World, rng: Random) -> None:
    """It takes no message more for a while."""
    async with _jetstream(world) as js:
        config = (await js.stream_info("penstock-exec")).config
        await js.update_stream(config, max_msgs=1)
        try:
            await asyncio.sleep(rng.uniform(0.5, 2.0))
        finally:
            await js.update_stream(config, max_msgs=-1)


async def drop_nats(world: World, rng: Random) -> None:
    """A network that loses everything and closes nothing."""
    world.nats_proxy.drop(True)
    await asyncio.sleep(rng.uniform(0.2, 3.0))
    world.nats_proxy.drop(False)
    world.nats_proxy.cut()


async def swallow_acknowledgements(world: World, rng: Random) -> None:
    world.nats_proxy.swallow(rng.randint(1, 4))


@asynccontextmanager
async def _jetstream(world: World) -> AsyncIterator[JetStreamContext]:
    if world.nats is None:
        raise RuntimeError("this world has no NATS")
    client = await nats.connect(
        world.nats.url, allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0
    )
    try:
        yield client.jetstream(timeout=2)
    finally:
        await client.close()


NATS_FAULTS: dict[Callable[[World, Random], Awaitable[None]], int] = {
    kill_nats: 8,
    delete_streams: 8,
    purge_stream: 5,
    fill_stream: 5,
    drop_nats: 5,
    swallow_acknowledgements: 8,
}
