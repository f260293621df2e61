"""Garbage-collect objects and uploads that failed attempts left behind.

An object is deleted only if all of this holds: its key names an attempt, it is older than the
minimum age, its attempt can no longer commit, and no manifest above it lists it. The order of the
reads matters: first list the objects, then query the live attempts, then read the manifests. An
attempt that commits in between is either still live or already listed; one that is neither has
lost its fence and can never be listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.kit import logging
from penstock.kit.clock import SYSTEM, Clock
from penstock.kit.errors import InvalidInput
from penstock.storage import manifest
from penstock.storage.concurrency import each
from penstock.storage.errors import ObjectDamaged, ObjectMissing
from penstock.storage.keys import ancestors, check_prefix
from penstock.storage.part import attempt_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence
    from datetime import datetime

    from penstock.storage.contract import ObjectInfo, Store

log = logging.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """`uploads` is None when the store cannot list its unfinished uploads. `unread` counts
    unreadable manifests: everything below those is kept."""

    objects: int
    bytes: int
    uploads: int | None
    unread: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedKeys:
    keys: frozenset[str]
    unread: tuple[str, ...]

    def covers(self, key: str) -> bool:
        return key in self.keys or key.startswith(self.unread)


async def no_live_attempts() -> Collection[str]:
    return ()


class Sweeper:
    """`floor` is the minimum age. `live` returns the attempts that run or whose parts wait for
    their manifest; without it, `floor` must exceed the longest export."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        *,
        floor: timedelta = timedelta(hours=48),
        live: Callable[[], Awaitable[Collection[str]]] = no_live_attempts,
        clock: Clock = SYSTEM,
    ) -> None:
        self._store = store
        self._prefix = check_prefix(prefix)
        self._floor = floor
        self._live = live
        self._clock = clock

    async def run_once(self) -> Swept:
        oldest = self._clock.now() - self._floor
        objects = [
            o async for o in self._store.list(self._prefix) if _is_old(o.key, o.modified, oldest)
        ]
        uploads = await self._store.uploads.under(self._prefix)
        live = set(await self._live())
        objects = [o for o in objects if attempt_of(o.key) not in live]
        old = [u for u in uploads or () if _is_old(u.key, u.started, oldest)]
        abandoned = [u for u in old if attempt_of(u.key) not in live]
        named = await self._named(objects)
        orphans = [o for o in objects if not named.covers(o.key)]
        await self._store.delete(o.key for o in orphans)
        if abandoned:
            await self._store.uploads.abort(abandoned)
        swept = Swept(
            objects=len(orphans),
            bytes=sum(o.size for o in orphans),
            uploads=None if uploads is None else len(abandoned),
            unread=len(named.unread),
        )
        log.info(
            "storage_swept",
            prefix=self._prefix,
            objects=swept.objects,
            bytes=swept.bytes,
            uploads=swept.uploads,
        )
        return swept

    async def _named(self, objects: Sequence[ObjectInfo]) -> _NamedKeys:
        folders = sorted({folder for o in objects for folder in ancestors(o.key)})
        keys: set[str] = set()
        unread: list[str] = []
        for folder, names in zip(folders, await each(folders, self._names), strict=True):
            if names is None:
                unread.append(folder)
            else:
                keys |= names
        return _NamedKeys(keys=frozenset(keys), unread=tuple(unread))

    async def _names(self, folder: str) -> set[str] | None:
        """The keys in the folder's manifest; None if the manifest is unreadable."""
        try:
            read = await manifest.read_manifest(self._store, folder)
        except ObjectMissing:
            return set()
        except ObjectDamaged:
            log.warning("manifest_unreadable", prefix=folder)
            return None
        return {part.path for part in read.parts}


async def remove(store: Store, prefix: str) -> int:
    """Delete a result and everything under its prefix, the manifest first; returns the bytes
    freed."""
    if not check_prefix(prefix):
        raise InvalidInput("The prefix of a result must not be empty: that is the whole store.")
    await store.delete([prefix + manifest.NAME])
    objects = [o async for o in store.list(prefix)]
    await store.delete(o.key for o in objects)
    return sum(o.size for o in objects)


def _is_old(key: str, moment: datetime, oldest: datetime) -> bool:
    return moment <= oldest and attempt_of(key) is not None
