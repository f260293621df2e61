"""The instance controller: launches and stops graph servers until they match the instance rows.

A row is the desired state. `starting` without a process requires a launch; `stopping` requires a
stop and then deletes the row; `suspended` and `failed` with a process require a stop. `placed` is
written before a launch: from then on a process may exist, and the row stays until it is gone.
Launching the same run twice makes one process (guaranteed by the launcher), so a new leader simply
starts over from the rows.

One control plane at a time does this for a place: it holds a PostgreSQL advisory lock, which is
released when it dies. It is notified after each transition and also polls every few seconds in
case a notification was lost. Every running process is watched: if it ends without a reported
error, its exit becomes the cause of the failure.
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

CHANNEL = "instance-errands"
POLL_SECONDS = 5.0
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
        notifier: Notifier,
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
        self._notifier = notifier
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
        """Work in progress is abandoned; the next leader resumes it from the rows."""
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
            heard = self._notifier.heard((CHANNEL,))
            await self._launcher.attend()
            await self.look()
            self._main.works()
            await self._notifier.wait((CHANNEL,), POLL_SECONDS, heard=heard)

    async def adopt(self) -> None:
        """Take over from the last leader: find its processes, complete the launches that it broke
        off, and clear `placed` where it had not launched yet."""
        for instance in await self._instances.pending():
            if not instance.placed or not instance.status.lives:
                continue
            process = await self._launcher.inspect(instance.handle)
            if process is None and instance.status.launching:
                await self._instances.unplace(instance)
            elif process is not None and process.alive and instance.status.launching:
                self._begin("launch", instance, self._start(instance))
            log.info(
                "instance_adopted",
                instance_id=instance.instance_id,
                alive=process is not None and process.alive,
            )

    async def look(self) -> None:
        """Start the tasks that the rows require and that do not run yet."""
        for instance in await self._instances.pending():
            match instance.status:
                case InstanceStatus.STARTING | InstanceStatus.RESUMING if not instance.placed:
                    self._begin("launch", instance, self._launch(instance))
                case InstanceStatus.STARTING | InstanceStatus.RESUMING | InstanceStatus.RUNNING:
                    self._begin("watch", instance, self._watch(instance))
                case InstanceStatus.STOPPING:
                    self._begin("stop", instance, self._terminate(instance))
                case _:
                    self._begin("stop", instance, self._end_process(instance))

    def _begin(self, what: str, instance: Instance, work: Coroutine[None, None, None]) -> None:
        key = (what, instance.handle)
        if key in self._tasks:
            work.close()
            return
        task = self._tasks[key] = asyncio.create_task(self._run_task(what, instance, work))
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _run_task(
        self, what: str, instance: Instance, work: Coroutine[None, None, None]
    ) -> None:
        try:
            await work
        except DatabaseUnavailable:
            log.warning("errand_waits_for_database", errand=what, instance_id=instance.instance_id)
        except Exception:
            log.exception("errand_failed", errand=what, instance_id=instance.instance_id)

    async def _launch(self, instance: Instance) -> None:
        if await self._instances.place(instance):
            await self._start(instance)

    async def _start(self, instance: Instance) -> None:
        try:
            await self._launcher.start(self._launch_request(instance))
        except (PenstockError, OSError) as e:
            message = e.message if isinstance(e, PenstockError) else str(e)
            failure = Failure(code=ErrorCode.STARTUP_FAILED, message=message, phase="pod_scheduled")
            await self._fail(instance, lambda _: failure)
            return
        self._instances.on_change()

    def _launch_request(self, instance: Instance) -> LaunchRequest:
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
        await self._wait_for_launch(instance)
        ended = await self._launcher.wait(instance.handle)
        tail = await self._launcher.logs(instance.handle, tail=LOG_TAIL)
        await self._fail(instance, lambda now: cause(now, ended, tail))

    async def _fail(self, instance: Instance, failure: Callable[[Instance], Failure]) -> None:
        """Does nothing if the instance failed before, is stopping, or was launched again."""
        with suppress(NotFound):
            async with self._db.transaction() as tx:
                now = await self._instances.lock(tx, instance.instance_id)
                if now.launch == instance.launch and now.status.lives:
                    await self._instances.move(tx, now, InstanceStatus.FAILED, failure=failure(now))

    async def _terminate(self, instance: Instance) -> None:
        await self._stop(instance)
        await self._instances.drop(instance)

    async def _end_process(self, instance: Instance) -> None:
        """End the process of a failed or suspended instance; its row and its log stay."""
        await self._stop(instance)
        await self._instances.unplace(instance)

    async def _wait_for_launch(self, instance: Instance) -> bool:
        """Wait for a launch in progress; False if there is none."""
        launching = self._tasks.get(("launch", instance.handle))
        if launching is not None:
            await asyncio.wait([launching])
        return launching is not None

    async def _stop(self, instance: Instance) -> None:
        launched = await self._wait_for_launch(instance)
        if instance.placed or launched:
            quick = instance.force_stop or instance.status is InstanceStatus.FAILED
            await self._launcher.stop(instance.handle, grace=0.0 if quick else GRACE_SECONDS)
        await self._launcher.remove(instance.handle)
        await self._servers.forget(instance.handle)


def cause(instance: Instance, ended: Ended, tail: str) -> Failure:
    """The failure of a run that ended by itself without reporting an error."""
    phase = instance.loading_phase
    if ended.oom:
        code, message = (
            ErrorCode.OOM_KILLED,
            f"The graph server exceeded its memory limit of {instance.memory_gb} GB.",
        )
    elif instance.status.launching:
        code = ErrorCode.STARTUP_FAILED
        message = ended.cause or f"The graph server exited during startup: {ended}."
    else:
        code = ErrorCode.UNEXPECTED_TERMINATION
        message = ended.cause or f"The graph server exited unexpectedly: {ended}."
    return Failure(code=code, message=message, phase=phase, trace=tail or None)
