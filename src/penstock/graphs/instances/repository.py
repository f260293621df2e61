"""Instances in PostgreSQL: rows, status transitions and events.

Every transition writes an event. A transition that requires a launch or a stop is only the desired
state in the row; the instance controller is notified after the commit, and finds the row by polling
if the notification was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import orjson

from penstock.graphs.instances.model import Event, Instance, InstanceStatus, InstanceSummary
from penstock.graphs.listing import containing, ordered
from penstock.graphs.snapshots.repository import MAX_ID, SQL, check_naming
from penstock.kit import logging
from penstock.kit.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import asyncpg

    from penstock.graphs.instances.model import Failure
    from penstock.graphs.lifetime import Lifetime, LifetimeChange
    from penstock.graphs.snapshots.model import Snapshot
    from penstock.kit.cache import InvalidatedCache
    from penstock.kit.db import Db, Tx

log = logging.get(__name__)
MAX_MESSAGE = 4000
MAX_TRACE = 20_000
SortKey: TypeAlias = Literal[
    "created_at", "updated_at", "name", "owner_username", "status", "expires_at", "id"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInstance:
    owner: str
    name: str
    wrapper_type: str
    lifetime: Lifetime
    cpu_cores: int
    memory_gb: int
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFilter:
    snapshot_id: int | None = None
    mapping_id: int | None = None
    owner: str | None = None
    status: str | None = None
    search: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def values(self) -> dict[str, object]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return values | {"search": None if self.search is None else containing(self.search)}


class Instances:
    def __init__(
        self,
        db: Db,
        *,
        place: str,
        slug: Callable[[], str],
        on_change: Callable[[], None],
        cache: InvalidatedCache[Instance] | None = None,
    ) -> None:
        """`on_change` is called after the commit of every transition."""
        self._db = db
        self._cache = cache
        self._place = place
        self._slug = slug
        self.on_change = on_change

    async def get(self, instance_id: int, *, tx: Tx | None = None) -> Instance:
        async with self._db.transaction(tx) as inner:
            row = await inner.row(SQL.instance_get, instance_id=_checked_id(instance_id))
        return _instance(row, instance_id)

    async def by_slug(self, slug: str) -> Instance:
        """For the proxy: status, owner and launch are current, the rest up to a second old."""
        if self._cache is None:
            instance = await self._by_slug(slug)
        else:
            instance = await self._cache.get(slug, lambda: self._by_slug(slug), lasts=_is_running)
        if instance is None:
            raise NotFound("There is no such instance.")
        return instance

    async def _by_slug(self, slug: str) -> Instance | None:
        row = await self._db.row(SQL.instance_by_slug, slug=slug)
        return None if row is None else read(row)

    async def page(
        self, which: InstanceFilter, *, offset: int, limit: int, sort_by: SortKey, ascending: bool
    ) -> tuple[list[Instance], int]:
        column = "instance_id" if sort_by == "id" else sort_by
        listing = ordered(SQL.instance_page, "i.created_at", f"i.{column}", ascending=ascending)
        async with self._db.transaction() as tx:
            total: int = await tx.value(SQL.instance_count, **which.values())
            rows = await tx.fetch(listing, **which.values(), offset=offset, limit=limit)
        return [read(row) for row in rows], total

    async def events(self, instance_id: int) -> list[Event]:
        async with self._db.transaction() as tx:
            await self.get(instance_id, tx=tx)
            rows = await tx.fetch(SQL.instance_events, instance_id=instance_id)
        return [Event(**(dict(row) | {"details": orjson.loads(row["details"])})) for row in rows]

    async def of(self, owner: str) -> list[InstanceSummary]:
        rows = await self._db.fetch(SQL.instance_mine, owner=owner)
        return [
            InstanceSummary(
                instance_id=row["instance_id"],
                name=row["name"],
                status=InstanceStatus(row["status"]),
            )
            for row in rows
        ]

    async def pending(self) -> list[Instance]:
        """Instances of this place that need a launch or a stop, or have a process to watch."""
        return [read(row) for row in await self._db.fetch(SQL.instance_errands, place=self._place)]

    async def add(
        self, tx: Tx, new: NewInstance, snapshot: Snapshot, status: InstanceStatus
    ) -> Instance:
        check_naming(new.name, new.description)
        instance_id: int = await tx.value(
            SQL.instance_add,
            snapshot_id=snapshot.snapshot_id,
            mapping_id=snapshot.mapping_id,
            mapping_version=snapshot.mapping_version,
            owner_username=new.owner,
            wrapper_type=new.wrapper_type,
            name=new.name,
            description=new.description,
            status=str(status),
            url_slug=self._slug(),
            place=self._place,
            launch=int(status.launching),
            ttl=new.lifetime.ttl,
            inactivity_timeout=new.lifetime.inactivity_timeout,
            cpu_cores=new.cpu_cores,
            memory_gb=new.memory_gb,
        )
        await self.note(
            tx, instance_id, "created", actor=new.owner, snapshot_id=snapshot.snapshot_id
        )
        self._after_move(tx, instance_id, status)
        return await self.get(instance_id, tx=tx)

    async def lock(self, tx: Tx, instance_id: int) -> Instance:
        """The instance, its row locked until the transaction ends."""
        return _instance(
            await tx.row(SQL.instance_lock, instance_id=_checked_id(instance_id)), instance_id
        )

    async def move(
        self,
        tx: Tx,
        instance: Instance,
        status: InstanceStatus,
        *,
        actor: str | None = None,
        failure: Failure | None = None,
        memory_gb: int | None = None,
        node_count: int | None = None,
        edge_count: int | None = None,
        force_stop: bool = False,
        **details: object,
    ) -> Instance:
        """Change the status of an instance locked by `lock`; raises InvalidStateTransition."""
        instance.check(status)
        await tx.changed(
            SQL.instance_move,
            instance_id=instance.instance_id,
            status=str(status),
            launching=status.launching,
            error_code=None if failure is None else str(failure.code),
            error_message=None if failure is None else _tail(failure.message, MAX_MESSAGE),
            failed_phase=None if failure is None else _tail(failure.phase, MAX_MESSAGE),
            stack_trace=None if failure is None else _tail(failure.trace, MAX_TRACE),
            memory_gb=memory_gb,
            node_count=node_count,
            edge_count=edge_count,
            force_stop=force_stop,
        )
        error = (
            {}
            if failure is None
            else {"error_code": str(failure.code), "error_message": _clean(failure.message)[:500]}
        )
        await self.note(tx, instance.instance_id, str(status), actor=actor, **details, **error)
        self._after_move(tx, instance.instance_id, status, **error)
        return await self.get(instance.instance_id, tx=tx)

    async def note(
        self,
        tx: Tx,
        instance_id: int,
        event_type: str,
        *,
        actor: str | None = None,
        **details: object,
    ) -> None:
        document = orjson.dumps(details, default=str).decode()
        await tx.changed(
            SQL.instance_event_add,
            instance_id=instance_id,
            event_type=event_type,
            actor=actor,
            details=document,
        )

    def _after_move(self, tx: Tx, instance_id: int, status: InstanceStatus, **error: str) -> None:
        def after() -> None:
            log.info("instance_moved", instance_id=instance_id, status=str(status), **error)
            self.on_change()

        tx.after_commit(after)

    async def place(self, instance: Instance) -> bool:
        """Record that a process of this launch may exist from now on; False if the row changed."""
        return bool(
            await self._db.changed(
                SQL.instance_place, instance_id=instance.instance_id, launch=instance.launch
            )
        )

    async def unplace(self, instance: Instance) -> None:
        """Record that no process of this launch exists any more."""
        await self._db.changed(
            SQL.instance_unplace, instance_id=instance.instance_id, launch=instance.launch
        )

    async def drop(self, instance: Instance) -> None:
        await self._db.changed(SQL.instance_drop, instance_id=instance.instance_id)
        log.info("instance_gone", instance_id=instance.instance_id)

    async def change(
        self, instance_id: int, *, name: str | None, description: str | None, set_description: bool
    ) -> Instance:
        check_naming(name or "-", description)
        async with self._db.transaction() as tx:
            await tx.changed(
                SQL.instance_change,
                instance_id=instance_id,
                name=name,
                set_description=set_description,
                description=description,
            )
            return await self.get(instance_id, tx=tx)

    async def live(self, instance_id: int, change: LifetimeChange) -> Instance:
        """Change the lifetime; a ttl counts from now and never shortens the current one."""
        async with self._db.transaction() as tx:
            await tx.changed(SQL.instance_lifecycle, instance_id=instance_id, **change.values())
            return await self.get(instance_id, tx=tx)

    async def resize(
        self,
        tx: Tx,
        instance_id: int,
        *,
        cpu_cores: int | None = None,
        memory_gb: int | None = None,
    ) -> None:
        await tx.changed(
            SQL.instance_resize, instance_id=instance_id, cpu_cores=cpu_cores, memory_gb=memory_gb
        )


def _is_running(instance: Instance) -> bool:
    """Only running instances are cached: any other status is about to change."""
    return instance.status is InstanceStatus.RUNNING


def _tail(text: str | None, most: int) -> str | None:
    """The end of a long text: that is where a traceback has its error."""
    return None if text is None else _clean(text)[-most:]


def _clean(text: str) -> str:
    return text.replace("\x00", "")


def _checked_id(instance_id: int) -> int:
    if not 0 < instance_id <= MAX_ID:
        raise missing(instance_id)
    return instance_id


def missing(instance_id: int) -> NotFound:
    return NotFound(f"There is no instance {instance_id}.")


def _instance(row: asyncpg.Record | None, instance_id: int) -> Instance:
    if row is None:
        raise missing(instance_id)
    return read(row)


def read(row: asyncpg.Record) -> Instance:
    values = dict(row)
    progress = None if values["progress"] is None else orjson.loads(values["progress"])
    return Instance(**(values | {"progress": progress, "status": InstanceStatus(values["status"])}))
