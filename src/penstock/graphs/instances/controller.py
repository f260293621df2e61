"""Launches and stops: what the rows of instances ask for is carried out, once, however often we
crash.

A row is the intent. `starting` without a process asks for a launch, `stopping` for an end and then
its deletion, `suspended` and `failed` with a process for an end. Before a launch `placed` is
written: from then on a process may exist, and nobody forgets it before it is gone. Launching the
same run twice makes one process (the launcher's promise), so whoever takes over simply begins again
with what the rows say.

One control plane does this for a place at a time: it holds an advisory lock, which PostgreSQL takes
from it when it dies. It is rung for after each step that asks for something; a look every few
seconds makes up for a lost ring. Every run that lives is watched: how it ended becomes the cause of
a failure that has none.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.graphs.instances.model import ErrorCode, Failure, Instance, InstanceStatus
from penstock.kit import logging
from penstock.kit.background import BackgroundTask
from penstock.kit.errors import DatabaseUnavailable, NotFound, PenstockError
from penstock.launchers.contract import LaunchRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from penstock.graphs.instances.graph_servers import GraphServers
    from penstock.graphs.instances.repository import Instances
    from penstock.jobs.notifier import Notifier
    from penstock.kit.background import BackgroundHealth
    from penstock.kit.db import Db
    from penstock.launchers.contract import Ended, Handle, Launcher

BELL = "instance-errands"
LOOK_SECONDS = 5.0
ELECTION_SECONDS = 1.0
GRACE_SECONDS = 5.0
LOG_TAIL = 8000
log = logging.get(__name__)


class InstanceController:
    def __init__(
        self,
        db: Db,
        instances: Instances,
        launcher: Launcher,
        servers: GraphServers,
        bell: Notifier,
        *,
        token_of: Callable[[int], str],
        control_plane_url: str,
        environment: Mapping[str, str],
        secrets: Mapping[str, str],
        health: BackgroundHealth,
    ) -> None:
        self._db = db
        self._instances = instances
        self._launcher = launcher
        self._servers = servers
        self._bell = bell
        self._token_of = token_of
        self._url = control_plane_url
        self._environment = environment
        self._secrets = secrets
        self._tasks: dict[tuple[str, Handle], asyncio.Task[None]] = {}
        self._main = BackgroundTask("instance errands", self._run, health)
        digest = hashlib.sha256(f"penstock.errands.{launcher.place}".encode()).digest()
        self._key = int.from_bytes(digest[:8], signed=True)

    async def __aenter__(self) -> InstanceController:
        self._main.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """What is under way is left as it stands; the rows tell the next one."""
        await self._main.stop()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            async with self._db.turn(self._key) as mine:
                self._main.works()
                if mine:
                    await self._lead()
            await asyncio.sleep(ELECTION_SECONDS)

    async def _lead(self) -> None:
        await self.adopt()
        while self._db.holds(self._key):
            heard = self._bell.heard((BELL,))
            await self._launcher.attend()
            await self.look()
            self._main.works()
            await self._bell.wait((BELL,), LOOK_SECONDS, heard=heard)

    async def adopt(self) -> None:
        """After another one died: what it wrote down and did not do is done, what it started is
        known."""
        for instance in await self._instances.errands():
            if not instance.placed or not instance.status.lives:
                continue
            found = await self._launcher.inspect(instance.handle)
            if found is None and instance.status.launching:
                await self._instances.unplace(instance)
            log.info(
                "instance_adopted",
                instance_id=instance.instance_id,
                alive=found is not None and found.alive,
            )

    async def look(self) -> None:
        """Begin whatever is asked for and not under way."""
        for instance in await self._instances.errands():
            match instance.status:
                case InstanceStatus.STARTING | InstanceStatus.RESUMING if not instance.placed:
                    self._begin("launch", instance, self._launch(instance))
                case InstanceStatus.STARTING | InstanceStatus.RESUMING | InstanceStatus.RUNNING:
                    self._begin("watch", instance, self._watch(instance))
                case InstanceStatus.STOPPING:
                    self._begin("stop", instance, self._end(instance))
                case _:
                    self._begin("stop", instance, self._clear(instance))

    def _begin(self, what: str, instance: Instance, work: Coroutine[None, None, None]) -> None:
        key = (what, instance.handle)
        if key in self._tasks:
            work.close()
            return
        task = self._tasks[key] = asyncio.create_task(self._guarded(what, instance, work))
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _guarded(
        self, what: str, instance: Instance, work: Coroutine[None, None, None]
    ) -> None:
        try:
            await work
        except DatabaseUnavailable:
            log.warning("errand_waits_for_database", errand=what, instance_id=instance.instance_id)
        except Exception:
            log.exception("errand_failed", errand=what, instance_id=instance.instance_id)

    async def _launch(self, instance: Instance) -> None:
        if not await self._instances.place(instance):
            return
        try:
            await self._launcher.start(self._order(instance))
        except (PenstockError, OSError) as e:
            message = e.message if isinstance(e, PenstockError) else str(e)
            failure = Failure(code=ErrorCode.STARTUP_FAILED, message=message, phase="pod_scheduled")
            await self._fail(instance, lambda _: failure)
            return
        self._instances.ring()

    def _order(self, instance: Instance) -> LaunchRequest:
        return LaunchRequest(
            handle=instance.handle,
            slug=instance.url_slug,
            owner=instance.owner_username,
            backend=instance.wrapper_type,
            memory_bytes=instance.memory_bytes,
            cpu_cores=instance.cpu_cores,
            token=self._token_of(instance.instance_id),
            control_plane_url=self._url,
            environment=self._environment,
            secrets=self._secrets,
        )

    async def _watch(self, instance: Instance) -> None:
        await self._launched(instance)
        ended = await self._launcher.wait(instance.handle)
        tail = await self._launcher.logs(instance.handle, tail=LOG_TAIL)
        await self._fail(instance, lambda now: cause(now, ended, tail))

    async def _fail(self, instance: Instance, failure: Callable[[Instance], Failure]) -> None:
        """Unless it failed already, is meant to be gone, or has been launched again."""
        with suppress(NotFound):
            async with self._db.transaction() as tx:
                now = await self._instances.lock(tx, instance.instance_id)
                if now.launch == instance.launch and now.status.lives:
                    await self._instances.move(tx, now, InstanceStatus.FAILED, failure=failure(now))

    async def _end(self, instance: Instance) -> None:
        await self._stop(instance)
        await self._instances.drop(instance)

    async def _clear(self, instance: Instance) -> None:
        """A failed or suspended one keeps its row; its process and files go, its log stays."""
        await self._stop(instance)
        await self._instances.unplace(instance)

    async def _launched(self, instance: Instance) -> bool:
        """After a launch that is under way; whether there was one."""
        launching = self._tasks.get(("launch", instance.handle))
        if launching is not None:
            await asyncio.wait([launching])
        return launching is not None

    async def _stop(self, instance: Instance) -> None:
        launched = await self._launched(instance)
        if instance.placed or launched:
            quick = instance.force_stop or instance.status is InstanceStatus.FAILED
            await self._launcher.stop(instance.handle, grace=0.0 if quick else GRACE_SECONDS)
        await self._launcher.remove(instance.handle)
        await self._servers.forget(instance.handle)


def cause(instance: Instance, ended: Ended, tail: str) -> Failure:
    """Of a run that ended by itself, and said nothing of why."""
    phase = (instance.progress or {}).get("phase")
    if ended.oom:
        code, message = (
            ErrorCode.OOM_KILLED,
            f"The graph server took more than its {instance.memory_gb} GB of memory.",
        )
    elif instance.status.launching:
        code, message = (
            ErrorCode.STARTUP_FAILED,
            f"The graph server ended while it started: {ended}.",
        )
    else:
        code, message = (
            ErrorCode.UNEXPECTED_TERMINATION,
            f"The graph server ended by itself: {ended}.",
        )
    return Failure(code=code, message=message, phase=phase, trace=tail or None)
