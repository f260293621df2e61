"""Configured sources: a row each, with credentials that go in and never come out but to whoever opens the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg
import orjson

from penstock.kit.errors import Conflict, InvalidInput, NotFound, PenstockError
from penstock.kit.ids import check_name
from penstock.kit.logging import scrub
from penstock.kit.sqlfile import load
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from penstock.kit.db import Db, Tx
    from penstock.kit.vault import Vault
    from penstock.sources.contract import Source

SQL = load("penstock.sources.sql")
MAX_CONFIG = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    data_source_id: int
    name: str
    type: str
    owner: str
    is_default: bool
    config: Mapping[str, Any]
    has_credentials: bool
    created_at: datetime
    updated_at: datetime
    tested_at: datetime | None
    test_ok: bool | None
    test_says: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What it takes to open a source; held in memory only."""

    type: str
    config: Mapping[str, Any]
    secrets: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Opening(type={self.type!r})"

    def source(self) -> Source:
        return open_source(self.type, self.config, self.secrets)


class DataSources:
    def __init__(self, db: Db, vault: Vault) -> None:
        self._db = db
        self._vault = vault

    async def add(
        self, *, name: str, kind: str, owner: str, config: Mapping[str, Any], secrets: Mapping[str, str]
    ) -> DataSource:
        """The configuration is checked by its driver before anything is written."""
        check_name(name, "Data source")
        open_source(kind, config, secrets)
        async with self._db.transaction() as tx:
            try:
                row_id: int = await tx.value(
                    SQL.source_add, name=name, type=kind, owner=owner, config=_dump(config, "configuration")
                )
            except asyncpg.UniqueViolationError:
                raise Conflict(f"There is a data source {name!r} already.", name=name) from None
            await self._seal(tx, row_id, secrets)
        return await self.get(row_id)

    async def update(
        self,
        data_source_id: int,
        *,
        name: str | None,
        config: Mapping[str, Any] | None,
        secrets: Mapping[str, str] | None,
    ) -> DataSource:
        """What is None stays as it is; an earlier test no longer counts."""
        old = await self.opening(data_source_id)
        open_source(old.type, old.config if config is None else config, old.secrets if secrets is None else secrets)
        if name is not None:
            check_name(name, "Data source")
        text = None if config is None else _dump(config, "configuration")
        async with self._db.transaction() as tx:
            try:
                await tx.changed(SQL.source_update, data_source_id=data_source_id, name=name, config=text)
            except asyncpg.UniqueViolationError:
                raise Conflict(f"There is a data source {name!r} already.", name=name) from None
            if secrets is not None:
                await self._seal(tx, data_source_id, secrets)
        return await self.get(data_source_id)

    async def get(self, data_source_id: int) -> DataSource:
        return _record(await self._row(data_source_id))

    async def find(self, reference: str) -> DataSource:
        """By name, or by number."""
        row_id = int(reference) if reference.isdigit() else await self._db.value(SQL.source_by_name, name=reference)
        if row_id is None:
            raise NotFound(f"There is no data source {reference[:80]!r}.")
        return await self.get(row_id)

    async def default(self) -> DataSource | None:
        row_id = await self._db.value(SQL.source_default)
        return None if row_id is None else await self.get(row_id)

    async def page(self, *, kind: str | None = None, offset: int = 0, limit: int = 50) -> tuple[list[DataSource], int]:
        found = await self._db.fetch(SQL.source_list, type=kind, offset=offset, limit=limit)
        return [_record(r) for r in found], await self._db.value(SQL.source_count, type=kind)

    async def drop(self, data_source_id: int) -> None:
        if not await self._db.changed(SQL.source_drop, data_source_id=data_source_id):
            raise NotFound(f"There is no data source {data_source_id}.")

    async def make_default(self, data_source_id: int) -> DataSource:
        async with self._db.transaction() as tx:
            await tx.changed(SQL.source_undefault)
            if not await tx.changed(SQL.source_make_default, data_source_id=data_source_id):
                raise NotFound(f"There is no data source {data_source_id}.")
        return await self.get(data_source_id)

    async def opening(self, data_source_id: int) -> Opening:
        row = await self._row(data_source_id)
        secrets: dict[str, str] = {}
        if row["credentials"] is not None:
            secrets = orjson.loads(self._vault.open(row["credentials"], row=_row_name(data_source_id)))
        return Opening(type=row["type"], config=orjson.loads(row["config"]), secrets=secrets)

    async def test(self, data_source_id: int) -> DataSource:
        """Really connect, and remember what was said."""
        opening = await self.opening(data_source_id)
        try:
            async with opening.source() as source:
                ok, says = True, await source.test()
        except PenstockError as e:
            ok, says = False, e.message
        await self._db.changed(SQL.source_tested, data_source_id=data_source_id, ok=ok, says=scrub(says)[:2000])
        return await self.get(data_source_id)

    async def rekey(self) -> int:
        """Seal with the current key what an older one sealed; returns how many."""
        changed = 0
        async with self._db.transaction() as tx:
            for row in await tx.fetch(SQL.source_sealed):
                if not self._vault.is_current(row["credentials"]):
                    name = _row_name(row["data_source_id"])
                    sealed = self._vault.seal(self._vault.open(row["credentials"], row=name), row=name)
                    await tx.changed(SQL.source_seal, data_source_id=row["data_source_id"], credentials=sealed)
                    changed += 1
        return changed

    async def _seal(self, tx: Tx, data_source_id: int, secrets: Mapping[str, str]) -> None:
        text = _dump(secrets, "credentials").encode()
        sealed = self._vault.seal(text, row=_row_name(data_source_id)) if secrets else None
        await tx.changed(SQL.source_seal, data_source_id=data_source_id, credentials=sealed)

    async def _row(self, data_source_id: int) -> asyncpg.Record:
        row = await self._db.row(SQL.source_get, data_source_id=data_source_id) if 0 < data_source_id < 2**63 else None
        if row is None:
            raise NotFound(f"There is no data source {data_source_id}.")
        return row


def _row_name(data_source_id: int) -> str:
    return f"data_source:{data_source_id}"


def _record(row: asyncpg.Record) -> DataSource:
    values: dict[str, Any] = dict(row)
    sealed = values.pop("credentials")
    return DataSource(**(values | {"config": orjson.loads(row["config"]), "has_credentials": sealed is not None}))


def _dump(value: Mapping[str, Any], what: str) -> str:
    raw = orjson.dumps(dict(value))
    if len(raw) > MAX_CONFIG:
        raise InvalidInput(f"The {what} has {len(raw):,} bytes; at most {MAX_CONFIG:,} are taken.")
    return raw.decode()
