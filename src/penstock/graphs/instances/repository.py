"""Instances in PostgreSQL: their rows, the steps that they take, and what happened to each.

Every step is an event, written with it. A step that needs somebody at work (a launch, a stop) is an
intent in the row; whoever carries it out is rung for after the commit, and finds it by the row
alone if the ring was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson

from penstock.graphs.instances.model import Event, Instance, InstanceStatus
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

    def values(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__slots__}
        return found | {"search": None if self.search is None else containing(self.search)}


class Instances:
    def __init__(
        self,
        db: Db,
        *,
        place: str,
        slug: Callable[[], str],
        ring: Callable[[], None],
        remembered: InvalidatedCache[Instance] | None = None,
    ) -> None:
        """`ring` is called after the commit of every step of an instance."""
        self._db = db
        self._remembered = remembered
        self._place = place
        self._slug = slug
        self.ring = ring

    # reading

    async def get(self, instance_id: int, *, tx: Tx | None = None) -> Instance:
        async with self._db.transaction(tx) as inner:
            row = await inner.row(SQL.instance_get, instance_id=_known(instance_id))
        return _found(row, instance_id)

    async def by_slug(self, slug: str) -> Instance:
        """For the proxy: its status, owner and launch are of now, the rest up to a second old."""
        if self._remembered is None:
            instance = await self._by_slug(slug)
        else:
            instance = await self._remembered.get(slug, lambda: self._by_slug(slug), lasts=_runs)
        if instance is None:
            raise NotFound("There is no such instance.")
        return instance

    async def _by_slug(self, slug: str) -> Instance | None:
        row = await self._db.row(SQL.instance_by_slug, slug=slug)
        return None if row is None else read(row)

    async def page(
        self, wanted: InstanceFilter, *, offset: int, limit: int, sort_by: SortKey, ascending: bool
    ) -> tuple[list[Instance], int]:
        column = "instance_id" if sort_by == "id" else sort_by
        listing = ordered(SQL.instance_page, "i.created_at", f"i.{column}", ascending=ascending)
        async with self._db.transaction() as tx:
            total: int = await tx.value(SQL.instance_count, **wanted.values())
            rows = await tx.fetch(listing, **wanted.values(), offset=offset, limit=limit)
        return [read(row) for row in rows], total

    async def events(self, instance_id: int) -> list[Event]:
        async with self._db.transaction() as tx:
            await self.get(instance_id, tx=tx)
            rows = await tx.fetch(SQL.instance_events, instance_id=instance_id)
        return [Event(**(dict(row) | {"details": orjson.loads(row["details"])})) for row in rows]

    async def of(self, owner: str) -> list[dict[str, Any]]:
        """What somebody has, in brief."""
        return [dict(row) for row in await self._db.fetch(SQL.instance_mine, owner=owner)]

    async def errands(self) -> list[Instance]:
        """Those of this place for which something is to be done, or which have a process to be
        watched."""
        return [read(row) for row in await self._db.fetch(SQL.instance_errands, place=self._place)]

    # steps

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
        self._moved(tx, instance_id, status)
        return await self.get(instance_id, tx=tx)

    async def lock(self, tx: Tx, instance_id: int) -> Instance:
        """The instance, held until the transaction ends."""
        return _found(await tx.row(SQL.instance_lock, instance_id=_known(instance_id)), instance_id)

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
        """The next step of an instance that `lock` gave; one that the state machine does not have
        is refused."""
        instance.check(status)
        await tx.changed(
            SQL.instance_move,
            instance_id=instance.instance_id,
            status=str(status),
            launching=status.launching,
            error_code=None if failure is None else str(failure.code),
            error_message=None if failure is None else _stored(failure.message, MAX_MESSAGE),
            failed_phase=None if failure is None else _stored(failure.phase, MAX_MESSAGE),
            stack_trace=None if failure is None else _stored(failure.trace, MAX_TRACE),
            memory_gb=memory_gb,
            node_count=node_count,
            edge_count=edge_count,
            force_stop=force_stop,
        )
        told = (
            {}
            if failure is None
            else {"error_code": str(failure.code), "error_message": _clean(failure.message)[:500]}
        )
        await self.note(tx, instance.instance_id, str(status), actor=actor, **details, **told)
        self._moved(tx, instance.instance_id, status, **told)
        return await self.get(instance.instance_id, tx=tx)

    async def note(
        self, tx: Tx, instance_id: int, event_type: str, *, actor: str | None = None, **details: Any
    ) -> None:
        told = orjson.dumps(details, default=str).decode()
        await tx.changed(
            SQL.instance_event_add,
            instance_id=instance_id,
            event_type=event_type,
            actor=actor,
            details=told,
        )

    def _moved(self, tx: Tx, instance_id: int, status: InstanceStatus, **told: str) -> None:
        def after() -> None:
            log.info("instance_moved", instance_id=instance_id, status=str(status), **told)
            self.ring()

        tx.after_commit(after)

    # the process behind it

    async def place(self, instance: Instance) -> bool:
        """Write down that a process of this launch may exist from now on; False when the row has
        moved on."""
        return bool(
            await self._db.changed(
                SQL.instance_place, instance_id=instance.instance_id, launch=instance.launch
            )
        )

    async def unplace(self, instance: Instance) -> None:
        """No process of this launch exists any more."""
        await self._db.changed(
            SQL.instance_unplace, instance_id=instance.instance_id, launch=instance.launch
        )

    async def drop(self, instance: Instance) -> None:
        await self._db.changed(SQL.instance_drop, instance_id=instance.instance_id)
        log.info("instance_gone", instance_id=instance.instance_id)

    # what is told of it

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
        """A ttl counts from now, and never shortens what was promised."""
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


def _runs(instance: Instance) -> bool:
    """One in any other state is about to change."""
    return instance.status is InstanceStatus.RUNNING


def _stored(text: str | None, most: int) -> str | None:
    """The end of a long text: that is where a trace says what went wrong."""
    return None if text is None else _clean(text)[-most:]


def _clean(text: str) -> str:
    return text.replace("\x00", "")


def _known(instance_id: int) -> int:
    if not 0 < instance_id <= MAX_ID:
        raise missing(instance_id)
    return instance_id


def missing(instance_id: int) -> NotFound:
    return NotFound(f"There is no instance {instance_id}.")


def _found(row: asyncpg.Record | None, instance_id: int) -> Instance:
    if row is None:
        raise missing(instance_id)
    return read(row)


def read(row: asyncpg.Record) -> Instance:
    values: dict[str, Any] = dict(row)
    progress = None if values["progress"] is None else orjson.loads(values["progress"])
    return Instance(**(values | {"progress": progress, "status": InstanceStatus(values["status"])}))
