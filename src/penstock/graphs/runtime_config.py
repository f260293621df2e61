"""Runtime configuration by operators: lifecycles, limits, read-only mode, export duration.

A value is read from the database whenever it is needed, in the caller's transaction if there is
one, so a change applies in every control plane as soon as it is committed. Unset values have the
defaults below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

import orjson

from penstock.graphs.duration import LONGEST
from penstock.graphs.errors import Maintenance
from penstock.graphs.snapshots.repository import SQL
from penstock.kit import logging
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import asyncpg

    from penstock.kit.db import Db, Tx

log = logging.get(__name__)

ResourceKind: TypeAlias = Literal["mapping", "snapshot", "instance"]
RESOURCE_KINDS: tuple[ResourceKind, ...] = get_args(ResourceKind)
MOST_PER_ANALYST = 100
MOST_IN_CLUSTER = 1000
SHORTEST_EXPORT, LONGEST_EXPORT = timedelta(seconds=60), timedelta(seconds=86_400)
MAX_MESSAGE = 1000
MAINTENANCE_MESSAGE = "The platform is read-only for now; nothing new can be created."


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleRule:
    """Default lifetime of a resource, and the maximum that may be requested. None: unlimited."""

    default_ttl: timedelta | None = None
    default_inactivity: timedelta | None = None
    max_ttl: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    per_analyst: int = 10
    cluster_total: int = 50
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOnlyMode:
    enabled: bool = False
    message: str = ""
    updated_at: datetime | None = None
    updated_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRule:
    max_duration: timedelta


DEFAULTS: Mapping[ResourceKind, LifecycleRule] = {
    "mapping": LifecycleRule(),
    "snapshot": LifecycleRule(default_ttl=timedelta(days=7), max_ttl=timedelta(days=90)),
    "instance": LifecycleRule(
        default_ttl=timedelta(days=1),
        default_inactivity=timedelta(hours=4),
        max_ttl=timedelta(days=7),
    ),
}


class Audit(Protocol):
    async def __call__(
        self, tx: Tx, actor: str, action: str, subject: str, detail: object, /
    ) -> None: ...


class PlatformConfig:
    def __init__(
        self, db: Db, *, export: timedelta = timedelta(hours=1), audit: Audit | None = None
    ) -> None:
        self._db = db
        self._export = export
        self._audit = audit

    async def lifecycle(self, tx: Tx | None = None) -> dict[ResourceKind, LifecycleRule]:
        rows = await self._get(*map(_lifecycle, RESOURCE_KINDS), tx=tx)
        return {kind: _rule(kind, rows.get(_lifecycle(kind))) for kind in RESOURCE_KINDS}

    async def concurrency(self, tx: Tx | None = None) -> Concurrency:
        return _concurrency((await self._get("concurrency", tx=tx)).get("concurrency"))

    async def maintenance(self, tx: Tx | None = None) -> ReadOnlyMode:
        return _maintenance((await self._get("maintenance", tx=tx)).get("maintenance"))

    async def export(self, tx: Tx | None = None) -> ExportRule:
        row = (await self._get("export", tx=tx)).get("export")
        if row is None:
            return ExportRule(max_duration=self._export)
        return ExportRule(
            max_duration=timedelta(seconds=orjson.loads(row["value"])["max_duration_seconds"])
        )

    async def refuse_in_maintenance(self, tx: Tx | None = None) -> None:
        """Raise Maintenance in read-only mode; call it before creating a resource."""
        mode = await self.maintenance(tx)
        if mode.enabled:
            raise Maintenance(
                mode.message or MAINTENANCE_MESSAGE, hint="Reads still work; try again later."
            )

    async def set_lifecycle(
        self, changes: Mapping[ResourceKind, Mapping[str, timedelta | None]], *, actor: str
    ) -> dict[ResourceKind, LifecycleRule]:
        """Fields that are not named stay unchanged; None clears."""
        async with self._db.transaction() as tx:
            for kind in RESOURCE_KINDS:  # a fixed lock order: each row stays locked until commit
                if change := changes.get(kind):
                    value = {
                        name: None if span is None else span.total_seconds()
                        for name, span in change.items()
                    }
                    _check_rule(
                        kind, _rule(kind, await self._put(tx, _lifecycle(kind), value, actor))
                    )
            return await self.lifecycle(tx)

    async def set_concurrency(
        self, *, per_analyst: int, cluster_total: int, actor: str
    ) -> Concurrency:
        _check_range("per_analyst", per_analyst, 1, MOST_PER_ANALYST)
        _check_range("cluster_total", cluster_total, 1, MOST_IN_CLUSTER)
        value = {"per_analyst": per_analyst, "cluster_total": cluster_total}
        async with self._db.transaction() as tx:
            return _concurrency(await self._put(tx, "concurrency", value, actor))

    async def set_maintenance(self, *, enabled: bool, message: str, actor: str) -> ReadOnlyMode:
        if len(message) > MAX_MESSAGE:
            raise InvalidInput(
                f"message must have at most {MAX_MESSAGE} characters.", field="message"
            )
        async with self._db.transaction() as tx:
            return _maintenance(
                await self._put(tx, "maintenance", {"enabled": enabled, "message": message}, actor)
            )

    async def set_export(self, max_duration: timedelta, *, actor: str) -> ExportRule:
        shortest, longest = (
            int(limit.total_seconds()) for limit in (SHORTEST_EXPORT, LONGEST_EXPORT)
        )
        seconds = int(max_duration.total_seconds())
        _check_range("max_duration_seconds", seconds, shortest, longest)
        async with self._db.transaction() as tx:
            await self._put(tx, "export", {"max_duration_seconds": seconds}, actor)
        return ExportRule(max_duration=max_duration)

    async def _get(self, *names: str, tx: Tx | None) -> dict[str, asyncpg.Record]:
        fetch = self._db.fetch if tx is None else tx.fetch
        return {row["name"]: row for row in await fetch(SQL.config_get, names=list(names))}

    async def _put(
        self, tx: Tx, name: str, value: Mapping[str, object], actor: str
    ) -> asyncpg.Record:
        text = orjson.dumps(value).decode()
        row = await tx.row(SQL.config_put, name=name, value=text, updated_by=actor)
        if self._audit is not None:
            await self._audit(tx, actor, "config.put", f"config:{name}", value)
        tx.after_commit(lambda: log.info("config_changed", name=name, actor=actor, value=text))
        assert row is not None
        return row


def _lifecycle(kind: ResourceKind) -> str:
    return f"lifecycle.{kind}"


def _rule(kind: ResourceKind, row: asyncpg.Record | None) -> LifecycleRule:
    value: dict[str, float | None] = {} if row is None else orjson.loads(row["value"])
    spans = {
        name: None if seconds is None else timedelta(seconds=seconds)
        for name, seconds in value.items()
    }
    return replace(DEFAULTS[kind], **spans)


def _concurrency(row: asyncpg.Record | None) -> Concurrency:
    if row is None:
        return Concurrency()
    return Concurrency(**orjson.loads(row["value"]), updated_at=row["updated_at"])


def _maintenance(row: asyncpg.Record | None) -> ReadOnlyMode:
    if row is None:
        return ReadOnlyMode()
    value = orjson.loads(row["value"])
    return ReadOnlyMode(**value, updated_at=row["updated_at"], updated_by=row["updated_by"])


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"{name} must be {least} to {most}, not {value}.", field=name)


def _check_rule(kind: ResourceKind, rule: LifecycleRule) -> None:
    for name in ("default_ttl", "default_inactivity", "max_ttl"):
        span: timedelta | None = getattr(rule, name)
        if span is None:
            continue
        if not timedelta(0) < span <= LONGEST:
            raise InvalidInput(
                f"{kind}.{name} must be positive and at most {LONGEST.days} days.",
                field=f"{kind}.{name}",
            )
        if span > (rule.max_ttl or LONGEST):
            raise InvalidInput(
                f"{kind}.{name} is longer than max_ttl.",
                hint="Raise max_ttl with it.",
                field=f"{kind}.{name}",
            )
