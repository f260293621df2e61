"""The pods of this installation as the API server has them: a list, then a watch of what changes.

A watch can end in any way: the server closes it, drops the connection, or says that it has
forgotten the version (410). All of them lead to the same: list again, which misses nothing, after a
short random pause that grows while passes fail. Even a watch that says nothing wrong is given up
after a minute for a new list, so an event that never came is made up for by then.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.kit import clock, logging
from penstock.kit.backoff import Backoff
from penstock.launchers.kubernetes import pod
from penstock.launchers.kubernetes.errors import Expired, KubernetesError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.launchers.kubernetes.api import KubernetesApi
    from penstock.launchers.kubernetes.pod import Pod

log = logging.get(__name__)
RESYNC_SECONDS = 60.0
BACKOFF = Backoff(base=0.2, factor=2.0, cap=15.0, least=0.5, most=1.0)
MAX_LAST = 1000
_QUIET = 1.0
"""A watch that ended sooner without an event counts as failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One list with the watch that followed."""

    listed: int
    events: int
    ended: Literal["resync", "closed", "expired", "lost"]


class PodWatch:
    def __init__(
        self,
        api: KubernetesApi,
        *,
        selector: str,
        time: clock.Clock = clock.SYSTEM,
        rng: random.Random | None = None,
        resync: float = RESYNC_SECONDS,
        on_pass: Callable[[], None] = lambda: None,
    ) -> None:
        self.pods: dict[str, Pod] = {}
        self.last: dict[str, Pod] = {}
        """The last state of pods that are gone, by name."""
        self.is_current = False
        self._api = api
        self._selector = selector
        self._time = time
        self._rng = rng or random.Random()  # noqa: S311 - it spreads pauses
        self._resync = resync
        self._on_pass = on_pass
        self._changed = asyncio.Event()
        self._failures = 0

    async def changed(self, within: float | None = None) -> None:
        """Return at the next change, or after `within` seconds."""
        try:
            await asyncio.wait_for(self._changed.wait(), within)
        except TimeoutError:
            return

    async def run(self) -> None:
        """Never returns; an error that listing does not mend is raised for the background task."""
        while True:
            try:
                report = await self.run_once()
            except Unreachable as e:
                await self._pause(str(e), e.after)
                continue
            log.debug("pods_watched", listed=report.listed, events=report.events, end=report.ended)
            if report.ended != "resync":
                await self._pause(report.ended)

    async def run_once(self) -> Pass:
        """List, then watch until the watch ends, or until it is time for the next list."""
        try:
            items, version = await self._api.list("pods", selector=self._selector)
        except KubernetesError:
            self.is_current = False
            raise
        self._replace({document["metadata"]["name"]: pod.read(document) for document in items})
        self.is_current = True
        self._on_pass()
        began, events = self._time.monotonic(), 0
        ended: Literal["resync", "closed", "expired", "lost"] = "closed"
        try:
            async with self._api.watch(
                "pods", selector=self._selector, version=version, seconds=self._resync
            ) as stream:
                async for event in stream:
                    events += self._apply(event)
                    if self._time.monotonic() - began >= self._resync:
                        break
        except Expired:
            ended = "expired"
        except KubernetesError as e:
            ended = "lost"
            log.info("pod_watch_lost", error=e.message)
        seconds = self._time.monotonic() - began
        if ended == "closed" and seconds >= self._resync:
            ended = "resync"
        if events or seconds >= _QUIET:
            self._failures = 0
        return Pass(listed=len(items), events=events, ended=ended)

    def put(self, fresh: Pod) -> None:
        """Note a pod that was asked for by its name."""
        cached = self.pods.get(fresh.name)
        if cached is None or not _is_older(fresh, cached):
            self.pods[fresh.name] = fresh
            self._wake()

    def forget(self, name: str) -> None:
        if (cached := self.pods.pop(name, None)) is not None:
            self._bury(cached)
        self._wake()

    async def _pause(self, why: str, least: float = 0.0) -> None:
        self._failures += 1
        seconds = max(least, BACKOFF.pause(self._failures, self._rng))
        log.info("pods_listed_again", reason=why, tries=self._failures, pause=round(seconds, 2))
        await self._time.sleep(seconds)

    def _replace(self, listed: dict[str, Pod]) -> None:
        for name in self.pods.keys() - listed.keys():
            self._bury(self.pods[name])
        self.pods = listed
        self._wake()

    def _apply(self, event: dict[str, Any]) -> bool:
        """Take an event in; False for bookmarks and for what was known already."""
        if event.get("type") not in ("ADDED", "MODIFIED", "DELETED"):
            return False
        fresh = pod.read(event["object"])
        cached = self.pods.get(fresh.name)
        if event["type"] == "DELETED":
            if cached is None or cached.uid != fresh.uid:
                return False
            del self.pods[fresh.name]
            self._bury(fresh)
        elif cached is not None and (_is_older(fresh, cached) or fresh == cached):
            return False
        else:
            self.pods[fresh.name] = fresh
        self._wake()
        return True

    def _bury(self, gone: Pod) -> None:
        self.last.pop(gone.name, None)
        self.last[gone.name] = gone
        while len(self.last) > MAX_LAST:
            del self.last[next(iter(self.last))]

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _is_older(fresh: Pod, cached: Pod) -> bool:
    """Versions grow, and compare as numbers where they are some."""
    if fresh.uid != cached.uid or not (fresh.version.isdecimal() and cached.version.isdecimal()):
        return False
    return int(fresh.version) < int(cached.version)
