"""Launcher that runs each graph server in a pod of its own.

Everything about a run is in its pod: the name says which run it is, an annotation whose, the status
how it ended. So control planes share nothing but the API server, and any of them can take over. A
pod is created first, then the service and the secret that it owns; it cannot begin before it has
the secret. Whoever finds a start broken off says it again. Deleting the pod deletes all three.
"""

from __future__ import annotations

import math
import random
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.kit import clock, logging
from penstock.kit.background import BackgroundHealth, BackgroundTask
from penstock.kit.backoff import Backoff
from penstock.launchers.contract import Address, Capabilities, Ended, Found, Usage
from penstock.launchers.errors import LaunchFailed, NoAddress
from penstock.launchers.kubernetes import manifest, pod
from penstock.launchers.kubernetes.ending import Patience, ending, is_overdue, removed
from penstock.launchers.kubernetes.errors import (
    AlreadyExists,
    KubernetesError,
    Missing,
    Unreachable,
)
from penstock.launchers.kubernetes.manifest import PORT, name_of
from penstock.launchers.kubernetes.pod import CONTAINER
from penstock.launchers.kubernetes.quantity import bytes_of
from penstock.launchers.kubernetes.watch import PodWatch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from penstock.launchers.contract import Handle, LaunchRequest
    from penstock.launchers.kubernetes.api import KubernetesApi
    from penstock.launchers.kubernetes.manifest import PodSettings
    from penstock.launchers.kubernetes.pod import Pod

T = TypeVar("T")
log = logging.get(__name__)
PERSISTENCE_SECONDS = 60.0
"""How long a call is repeated while the API server is away; it restarts in some ten seconds."""
LOG_LINES = 2000
_BACKOFF = Backoff(base=0.2, factor=2.0, cap=5.0, least=0.5, most=1.0)
_LOOK_SECONDS = 1.0
_SLOW_LOOK_SECONDS = 60.0


class KubernetesLauncher:
    """`async with KubernetesLauncher(api, settings) as launcher:` runs its watch."""

    def __init__(
        self,
        api: KubernetesApi,
        settings: PodSettings,
        *,
        patience: Patience | None = None,
        health: BackgroundHealth | None = None,
        time: clock.Clock = clock.SYSTEM,
        persistence: float = PERSISTENCE_SECONDS,
    ) -> None:
        self._api = api
        self._settings = settings
        self._patience = patience or Patience()
        self._time = time
        self._persistence = persistence
        self._rng = random.Random()  # noqa: S311 - it spreads pauses
        self._resources: frozenset[str] | None = None
        self._task = BackgroundTask("pod watch", self._run, health or BackgroundHealth())
        self._watch = PodWatch(api, selector=settings.selector, time=time, on_pass=self._task.works)

    async def __aenter__(self) -> KubernetesLauncher:
        self._task.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Pods run on."""
        await self._task.stop()

    @property
    def place(self) -> str:
        return f"kubernetes:{self._settings.namespace}/{self._settings.installation}"

    @property
    def capabilities(self) -> Capabilities:
        """Whether the server can resize pods in place is known after the first contact."""
        return Capabilities(resume=True, resize="pods/resize" in (self._resources or ()))

    async def start(self, order: LaunchRequest) -> None:
        created = await self._persistently(lambda: self._create_pod(order))
        if created.gone_at is not None or created.is_over:
            return
        await self._persistently(lambda: self._create_service(order.handle, created))
        secret = manifest.secret(order, self._settings, created)
        await self._persistently(lambda: self._created("secrets", secret))
        self._watch.put(created)
        log.info(
            "graph_server_launched",
            instance_id=order.handle.instance_id,
            launch=order.handle.launch,
            pod=created.name,
        )

    async def stop(self, handle: Handle, *, grace: float) -> None:
        """A pod always gets a second: without one, Kubernetes forgets it before it has ended."""
        await self._delete(handle, grace=max(1, math.ceil(grace)), until_ended=True)

    async def remove(self, handle: Handle) -> None:
        await self._delete(handle, grace=1, until_ended=False)
        self._watch.last.pop(name_of(handle), None)

    async def attend(self) -> None:
        """Mends labels that somebody edited: selectors find a pod by them."""
        for cached in list(self._watch.pods.values()):
            handle = manifest.handle_of(cached, self._settings)
            if handle is not None:
                await self._mend_labels(cached, handle)

    async def inspect(self, handle: Handle) -> Found | None:
        current = await self._persistently(lambda: self._own(handle))
        if current is None:
            return None
        await self._mend_labels(current, handle)
        return Found(handle=handle, ended=self._ending(current))

    async def list(self) -> Sequence[Found]:
        items, _ = await self._api.list("pods", selector=self._settings.selector)
        return [
            Found(handle=handle, ended=self._ending(current))
            for current in map(pod.read, items)
            if (handle := manifest.handle_of(current, self._settings)) is not None
        ]

    async def wait(self, handle: Handle) -> Ended:
        name = name_of(handle)
        while True:
            current = self._watch.pods.get(name)
            if current is None or manifest.handle_of(current, self._settings) != handle:
                current = await self._lookup(handle)
                if current is None:
                    return removed(self._watch.last.get(name))
            if (ended := self._ending(current)) is not None:
                return ended
            may_change_by_time = current.phase == "Pending" or current.gone_at is not None
            await self._watch.changed(_LOOK_SECONDS if may_change_by_time else _SLOW_LOOK_SECONDS)

    async def usage(self, handle: Handle) -> Usage | None:
        try:
            document: dict[str, Any] = await self._api.usage(name_of(handle))
            amounts = [entry["usage"]["memory"] for entry in document["containers"]]
        except (KubernetesError, KeyError, TypeError):
            return None
        return Usage(memory_bytes=sum(map(bytes_of, amounts)), disk_bytes=None)

    async def logs(self, handle: Handle, *, tail: int) -> str:
        """Empty if there is none: a pod that never ran has no log."""
        try:
            return await self._api.log(
                name_of(handle), container=CONTAINER, lines=LOG_LINES, tail=tail
            )
        except KubernetesError as e:
            log.info("pod_log_missing", pod=name_of(handle), error=e.message)
            return ""

    async def resize(self, handle: Handle, *, cpu_cores: int, memory_bytes: int) -> None:
        resources = manifest.resources(cpu_cores, memory_bytes, self._settings)
        change = {"spec": {"containers": [{"name": CONTAINER, "resources": resources}]}}
        await self._api.patch("pods", name_of(handle), change, part="resize")

    def address(self, handle: Handle) -> Address:
        current = self._watch.pods.get(name_of(handle))
        if current is None or not current.ip:
            raise NoAddress(f"The pod {name_of(handle)} has no address at present.")
        host = f"[{current.ip}]" if ":" in current.ip else current.ip
        return Address(url=f"http://{host}:{PORT}")

    def pod_name(self, handle: Handle) -> str | None:
        return name_of(handle)

    async def _run(self) -> None:
        if self._resources is None:
            self._resources = await self._api.resources()
        await self._watch.run()

    async def _create_pod(self, order: LaunchRequest) -> Pod:
        """The pod of the run, made now or before; a quota that it used up refuses a second one
        before its name is looked at."""
        name = name_of(order.handle)
        secret_name = f"{name}-{secrets.token_hex(4)}"
        body = manifest.pod(order, self._settings, secret_name=secret_name)
        while True:
            try:
                current = pod.read(await self._api.get("pods", name))
            except Missing:
                try:
                    return pod.read(await self._api.create("pods", body))
                except AlreadyExists:
                    continue
            if manifest.handle_of(current, self._settings) != order.handle:
                raise LaunchFailed(
                    f"Namespace {self._settings.namespace} has a pod {name} that is not of this"
                    " installation.",
                    hint="Delete it, or give each installation a namespace or a name of its own"
                    " (PENSTOCK_KUBERNETES_INSTALLATION).",
                )
            return current

    async def _create_service(self, handle: Handle, owner: Pod) -> None:
        """One of an earlier pod of that name would be deleted with it, soon."""
        body = manifest.service(handle, self._settings, owner)
        while not await self._created("services", body):
            try:
                current: dict[str, Any] = await self._api.get("services", owner.name)
                owners = current["metadata"].get("ownerReferences") or ()
                if any(reference.get("uid") == owner.uid for reference in owners):
                    return
                await self._api.delete("services", owner.name, uid=current["metadata"]["uid"])
            except Missing:
                continue

    async def _created(self, resource: Any, body: Any) -> bool:
        """False if it is there."""
        try:
            await self._api.create(resource, body)
        except AlreadyExists:
            return False
        return True

    async def _delete(self, handle: Handle, *, grace: int, until_ended: bool) -> None:
        """Delete the pod, and wait until it has ended or until the API server has none.

        A pod whose node is lost never ends; it is struck off then.
        """
        asked = ""
        while (current := await self._persistently(lambda: self._own(handle))) is not None:
            if until_ended and self._ending(current) is not None:
                return
            overdue = is_overdue(current, self._api.server_time)
            if current.uid != asked or overdue:
                asked = current.uid
                await self._persistently(
                    partial(self._delete_pod, current, 0 if overdue else grace)
                )
            else:
                await self._watch.changed(_LOOK_SECONDS)
        self._watch.forget(name_of(handle))

    async def _delete_pod(self, current: Pod, grace: int) -> None:
        try:
            await self._api.delete("pods", current.name, uid=current.uid, grace=grace)
        except Missing:
            return

    async def _own(self, handle: Handle) -> Pod | None:
        """The pod of the run, asked for by its name: labels can be edited."""
        try:
            current = pod.read(await self._api.get("pods", name_of(handle)))
        except Missing:
            return None
        return current if manifest.handle_of(current, self._settings) == handle else None

    async def _lookup(self, handle: Handle) -> Pod | None:
        """Like `_own`, for as long as it takes; and the watch sees the pod again."""
        while True:
            try:
                current = await self._own(handle)
            except KubernetesError as e:
                log.warning("pod_not_found_out", pod=name_of(handle), error=e.message)
                await self._time.sleep(_BACKOFF.cap)
                continue
            if current is not None:
                await self._mend_labels(current, handle)
                self._watch.put(current)
            return current

    async def _mend_labels(self, current: Pod, handle: Handle) -> None:
        labels = manifest.labels(handle, self._settings)
        if current.gone_at is not None or labels.items() <= current.labels.items():
            return
        log.warning("pod_labels_mended", pod=current.name, labels=dict(current.labels))
        try:
            await self._api.patch("pods", current.name, {"metadata": {"labels": dict(labels)}})
        except KubernetesError as e:
            log.warning("pod_labels_not_mended", pod=current.name, error=e.message)

    def _ending(self, current: Pod) -> Ended | None:
        return ending(current, self._api.server_time, self._patience, image=self._settings.image)

    async def _persistently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Every call of ours may be repeated: names and uids say what is meant."""
        until = self._time.monotonic() + self._persistence
        failures = 0
        while True:
            try:
                return await call()
            except Unreachable as e:
                if self._time.monotonic() >= until:
                    raise
                failures += 1
                await self._time.sleep(max(e.after, _BACKOFF.pause(failures, self._rng)))
