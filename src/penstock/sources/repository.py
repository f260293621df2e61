"""Repository of configured data sources; stored credentials are returned only to open a source."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import asyncpg
import orjson

from penstock.kit.concurrency_limit import ConcurrencyLimit
from penstock.kit.errors import Conflict, DependencyExists, InvalidInput, NotFound, PenstockError
from penstock.kit.ids import check_name
from penstock.kit.outbound import PUBLIC_ONLY
from penstock.kit.sqlfile import load
from penstock.sources.credentials import SourceCredentials
from penstock.sources.endpoints import destinations
from penstock.sources.errors import SourceUnavailable
from penstock.sources.transport import is_weaker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime
    from typing import TypeAlias, TypeVar

    from penstock.kit.db import Db, Tx
    from penstock.kit.outbound import OutboundPolicy
    from penstock.kit.vault import Vault
    from penstock.sources.ceilings import Ceilings
    from penstock.sources.contract import Source
    from penstock.sources.home import HomeGuard

    T = TypeVar("T")
    Reach: TypeAlias = Callable[[str], None]

SQL = load("penstock.sources.sql")
MAX_CONFIG = 64 * 1024
MAX_ID = 2**53 - 1
ASK_SECONDS = 30.0
SYSTEM_ACTOR = "penstock"
QUESTIONS = 8
_MAX_MESSAGE = 2000


class Audit(Protocol):
    """Writes the audit log entry of a change, in the same transaction."""

    async def __call__(
        self, tx: Tx, actor: str, action: str, subject: str, detail: object
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    data_source_id: int
    name: str
    type: str
    owner: str
    is_default: bool
    config: Mapping[str, object]
    has_credentials: bool
    created_at: datetime
    updated_at: datetime
    tested_at: datetime | None
    test_ok: bool | None
    test_says: str | None


class DataSources:
    """Data sources and their access checks, which run on every write and every open.

    `reach` rejects a destination by raising, `home` rejects Penstock's own resources, and
    `ceilings` bound the resources of a source. `outbound` is applied to every connection."""

    def __init__(
        self,
        db: Db,
        vault: Vault,
        *,
        reach: Reach | None = None,
        outbound: OutboundPolicy = PUBLIC_ONLY,
        home: HomeGuard | None = None,
        ceilings: Ceilings | None = None,
        turns: ConcurrencyLimit | None = None,
        audit: Audit | None = None,
    ) -> None:
        self._db = db
        self._vault = vault
        self._reach = reach
        self._outbound = outbound
        self._home = home
        self._ceilings = ceilings
        self.turns = turns or ConcurrencyLimit(total=QUESTIONS, per_user=QUESTIONS)
        self._audit = audit

    # writing

    async def add(
        self,
        *,
        name: str,
        kind: str,
        owner: str,
        config: Mapping[str, object],
        secrets: Mapping[str, str],
    ) -> DataSource:
        """Add a source; its driver checks the configuration before anything is written."""
        check_name(name, "Data source")
        await self._check(SourceCredentials(type=kind, config=config, secrets=secrets))
        self._check_ceilings(kind, config)
        text = _dump(config, "configuration")
        async with self._db.transaction() as tx:
            try:
                row_id: int = await tx.value(
                    SQL.source_add, name=name, type=kind, owner=owner, config=text
                )
            except asyncpg.UniqueViolationError:
                raise _taken(name) from None
            await self._seal(tx, row_id, secrets)
            await self._log_audit(tx, owner, "add", row_id, {"name": name, "type": kind})
        return await self.get(row_id)

    async def update(
        self,
        data_source_id: int,
        *,
        actor: str = SYSTEM_ACTOR,
        name: str | None = None,
        config: Mapping[str, object] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> DataSource:
        """Change what is not None; clears the result of earlier tests."""
        row = await self._row(data_source_id)
        now = SourceCredentials(
            type=row["type"],
            config=orjson.loads(row["config"]) if config is None else config,
            secrets=self._open(row) if secrets is None else secrets,
        )
        await self._check(now)
        if config is not None:
            self._check_ceilings(now.type, config)
        if secrets is None and now.secrets:
            _check_same_destination(now, orjson.loads(row["config"]))
        changed = {"name": name, "config": config is not None, "credentials": secrets is not None}
        text = None if config is None else _dump(config, "configuration")
        async with self._db.transaction() as tx:
            await self._rewrite(tx, data_source_id, name, text)
            if secrets is not None:
                await self._seal(tx, data_source_id, secrets)
            await self._log_audit(tx, actor, "update", data_source_id, changed)
        return await self.get(data_source_id)

    async def drop(self, data_source_id: int, *, actor: str = SYSTEM_ACTOR) -> None:
        async with self._db.transaction() as tx:
            try:
                async with tx.savepoint():
                    dropped = await tx.changed(SQL.source_drop, data_source_id=_id(data_source_id))
            except (asyncpg.ForeignKeyViolationError, asyncpg.RestrictViolationError):
                raise _in_use(data_source_id) from None
            if not dropped:
                raise _missing(data_source_id)
            await self._log_audit(tx, actor, "drop", data_source_id, {})

    async def make_default(self, data_source_id: int, *, actor: str = SYSTEM_ACTOR) -> DataSource:
        async with self._db.transaction() as tx:
            await tx.fetch(SQL.source_default_turn)
            await tx.changed(SQL.source_undefault)
            if not await tx.changed(SQL.source_make_default, data_source_id=_id(data_source_id)):
                raise _missing(data_source_id)
            await self._log_audit(tx, actor, "default", data_source_id, {})
        return await self.get(data_source_id)

    # reading

    async def get(self, data_source_id: int) -> DataSource:
        return _record(await self._row(data_source_id))

    async def find(self, reference: str) -> DataSource:
        """Find a source by name or id."""
        row_id = await self._db.value(SQL.source_by_name, name=reference)
        if row_id is None and reference.isascii() and reference.isdigit():
            row_id = int(reference[:20])
        if row_id is None:
            raise NotFound(f"There is no data source {reference[:80]!r}.")
        return await self.get(row_id)

    async def default(self) -> DataSource | None:
        row_id = await self._db.value(SQL.source_default)
        return None if row_id is None else await self.get(row_id)

    async def page(
        self, *, kind: str | None = None, offset: int = 0, limit: int = 50, ascending: bool = False
    ) -> tuple[list[DataSource], int]:
        listing = SQL.source_list.ascending() if ascending else SQL.source_list
        rows = await self._db.fetch(listing, type=kind, offset=offset, limit=limit)
        return [_record(r) for r in rows], await self._db.value(SQL.source_count, type=kind)

    # rights

    async def may_use(
        self, data_source_id: int, username: str, *, is_admin: bool | None = None
    ) -> bool:
        """Whether the user may read from the source; without `is_admin` the users table decides
        whether they are an admin."""
        allowed: bool = await self._db.value(
            SQL.source_right, data_source_id=data_source_id, username=username, is_admin=is_admin
        )
        return allowed

    async def usable(
        self, data_source_ids: Sequence[int], username: str, *, is_admin: bool | None = None
    ) -> frozenset[int]:
        """The subset of the sources that the user may read from."""
        rows = await self._db.fetch(
            SQL.source_rights,
            data_source_ids=list(data_source_ids),
            username=username,
            is_admin=is_admin,
        )
        return frozenset(row["data_source_id"] for row in rows)

    # opening

    async def opening(self, data_source_id: int) -> SourceCredentials:
        """The credentials to open a source, with its configuration clamped to the ceilings."""
        row = await self._row(data_source_id)
        config = orjson.loads(row["config"])
        if self._ceilings is not None:
            config = self._ceilings.clamp(row["type"], config)
        opening = SourceCredentials(
            type=row["type"], config=config, secrets=self._open(row), outbound=self._outbound
        )
        await self._check_home(opening)
        await self._check_reach(opening)
        return opening

    async def ask(
        self,
        data_source_id: int,
        question: Callable[[Source], Awaitable[T]],
        *,
        by: str,
        role: str | None = None,
    ) -> T:
        """Open the source, run a short query for a user, and close it. `role` applies to Trino.

        It runs in this process, including an embedded engine: `turns` limit the concurrency,
        ceilings the resources, and `ASK_SECONDS` the time.
        """
        async with self.turns.slot(by):
            return await self.ask_in_turn(data_source_id, question, role=role)

    async def ask_in_turn(
        self,
        data_source_id: int,
        question: Callable[[Source], Awaitable[T]],
        *,
        role: str | None = None,
    ) -> T:
        """For whoever has taken one of `turns` already, and gives it back when the answer is no
        longer in memory."""
        opening = await self.opening(data_source_id)
        if role is not None and opening.type == "trino":
            opening = replace(opening, config={**opening.config, "starburst_role": role})
        return await _ask(opening, question)

    async def test(
        self, data_source_id: int, *, by: str = SYSTEM_ACTOR
    ) -> tuple[DataSource, float]:
        """Connect, store the result, and return it with the duration in seconds."""
        opening = await self.opening(data_source_id)
        started = time.monotonic()
        async with self.turns.slot(by):
            try:
                ok, says = True, await _ask(opening, lambda source: source.test())
            except PenstockError as e:
                ok, says = False, e.message
        took = time.monotonic() - started
        text = says.replace("\x00", "")[:_MAX_MESSAGE]
        await self._db.changed(SQL.source_tested, data_source_id=data_source_id, ok=ok, says=text)
        return await self.get(data_source_id), took

    async def _check(self, opening: SourceCredentials) -> None:
        await self._check_home(opening)
        try:
            await asyncio.to_thread(opening.source)
        except PenstockError:
            raise
        except Exception as e:  # a library that fails on a configuration without saying why
            raise InvalidInput(
                f"The {opening.type} driver cannot use this configuration ({type(e).__name__}).",
                field="config",
            ) from None
        await self._check_reach(opening)

    def _check_ceilings(self, kind: str, config: Mapping[str, object]) -> None:
        if self._ceilings is not None:
            self._ceilings.check(kind, config)

    async def _check_home(self, opening: SourceCredentials) -> None:
        if self._home is not None:
            await asyncio.to_thread(self._home, opening.type, opening.config)

    async def _check_reach(self, opening: SourceCredentials) -> None:
        if self._reach is None:
            return
        for setting, url in destinations(opening.type, opening.config):
            try:
                await asyncio.to_thread(self._reach, url)
            except InvalidInput as e:
                field = f"config.{setting}"
                raise type(e)(f"{field}: {e.message}", hint=e.hint, field=field) from None

    async def _rewrite(
        self, tx: Tx, data_source_id: int, name: str | None, config: str | None
    ) -> None:
        if name is not None:
            check_name(name, "Data source")
        try:
            if not await tx.changed(
                SQL.source_update, data_source_id=data_source_id, name=name, config=config
            ):
                raise _missing(data_source_id)
        except asyncpg.UniqueViolationError:
            raise _taken(name) from None

    async def _seal(self, tx: Tx, data_source_id: int, secrets: Mapping[str, str]) -> None:
        text = _dump(secrets, "credentials").encode()
        sealed = self._vault.seal(text, row=row_name(data_source_id)) if secrets else None
        await tx.changed(SQL.source_seal, data_source_id=data_source_id, credentials=sealed)

    async def _log_audit(
        self, tx: Tx, actor: str, action: str, data_source_id: int, detail: Mapping[str, object]
    ) -> None:
        if self._audit is not None:
            await self._audit(tx, actor, f"data_source.{action}", row_name(data_source_id), detail)

    def _open(self, row: asyncpg.Record) -> dict[str, str]:
        if row["credentials"] is None:
            return {}
        secrets: dict[str, str] = orjson.loads(
            self._vault.open(row["credentials"], row=row_name(row["data_source_id"]))
        )
        return secrets

    async def _row(self, data_source_id: int) -> asyncpg.Record:
        row = await self._db.row(SQL.source_get, data_source_id=_id(data_source_id))
        if row is None:
            raise _missing(data_source_id)
        return row


async def _ask(opening: SourceCredentials, question: Callable[[Source], Awaitable[T]]) -> T:
    try:
        async with asyncio.timeout(ASK_SECONDS), opening.opened() as source:
            return await question(source)
    except TimeoutError:
        raise SourceUnavailable(
            f"The source did not answer within {ASK_SECONDS:g} seconds."
        ) from None


def _id(data_source_id: int) -> int:
    if not 0 < data_source_id <= MAX_ID:
        raise _missing(data_source_id)
    return data_source_id


def _missing(data_source_id: int) -> NotFound:
    return NotFound(f"There is no data source {data_source_id}.")


def _in_use(data_source_id: int) -> DependencyExists:
    return DependencyExists(
        f"There are mappings on data source {data_source_id}.",
        hint="Change their source, or delete them.",
    )


def _taken(name: str | None) -> Conflict:
    return Conflict(f"There is a data source {name!r} already.", name=name)


def _check_same_destination(now: SourceCredentials, before: Mapping[str, object]) -> None:
    """Reject an update that would send the stored credentials to another server."""
    if set(destinations(now.type, now.config)) != set(destinations(now.type, before)):
        raise InvalidInput(
            "credentials: the source changes its address, so they must be entered again.",
            field="credentials",
        )
    if is_weaker(now.type, now.config, before):
        raise InvalidInput(
            "credentials: the connection gets less secure, or trusts other certificates, so they"
            " must be entered again.",
            field="credentials",
        )


def row_name(data_source_id: int) -> str:
    return f"data_source:{data_source_id}"


def _record(row: asyncpg.Record) -> DataSource:
    values: dict[str, Any] = dict(row)
    sealed = values.pop("credentials")
    return DataSource(
        **(values | {"config": orjson.loads(row["config"]), "has_credentials": sealed is not None})
    )


def _dump(value: Mapping[str, object], what: str) -> str:
    try:
        raw = orjson.dumps(dict(value))
    except TypeError:
        raise InvalidInput(f"The {what} cannot be encoded as JSON.") from None
    if len(raw) > MAX_CONFIG:
        raise InvalidInput(f"The {what} has {len(raw):,} bytes; the maximum is {MAX_CONFIG:,}.")
    if b"\\u0000" in raw:
        raise InvalidInput(f"The {what} contains a NUL character, which cannot be stored.")
    return raw.decode()
