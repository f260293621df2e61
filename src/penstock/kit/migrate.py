"""Forward-only migrations: numbered SQL files in a package, each applied once, in order, and never
changed.

A package is migrated under one advisory lock, each file in a transaction of its own with a short
lock timeout (a busy table makes us try again, never the application wait). `-- no-transaction` in a
file's first line runs it outside one, for CREATE INDEX CONCURRENTLY. A database that knows a
version we do not know is left alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import asyncpg

from penstock.kit import logging
from penstock.kit.db import WRITABLE, away
from penstock.kit.errors import Conflict, Internal

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.get(__name__)
_FILE = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.sql")
_LOCK = 0x70656E7374  # "penst"
_LEDGER = """
CREATE SCHEMA IF NOT EXISTS penstock;
CREATE TABLE IF NOT EXISTS penstock.schema_migration (
  room text NOT NULL, version int NOT NULL, name text NOT NULL, sha256 text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (room, version)
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    room: str
    version: int
    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def transactional(self) -> bool:
        return not self.text.startswith("-- no-transaction")


def find(packages: Sequence[str]) -> list[Migration]:
    """Every migration of the packages, in the order they are applied."""
    return [migration for package in packages for migration in _of_room(package)]


def _of_room(package: str) -> list[Migration]:
    migrations = []
    for file in resources.files(package).iterdir():
        if match := _FILE.fullmatch(file.name):
            room = package.removeprefix("penstock.").removesuffix(".migrations")
            migrations.append(
                Migration(
                    room=room,
                    version=int(match["version"]),
                    name=match["name"],
                    text=file.read_text(),
                )
            )
    migrations.sort(key=lambda m: m.version)
    if [m.version for m in migrations] != list(range(1, len(migrations) + 1)):
        raise Internal(f"The migrations of {package} are not numbered 1, 2, 3 …")
    return migrations


async def migrate(
    dsn: str, migrations: Sequence[Migration], *, lock_timeout: float = 3.0, tries: int = 20
) -> list[str]:
    """Bring the schema up to date; returns what was applied."""
    with away():
        connection = await asyncpg.connect(dsn, timeout=10, target_session_attrs=WRITABLE)
    try:
        with away():
            await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
            return await _migrate(connection, migrations, lock_timeout, tries)
    finally:
        await connection.close(timeout=5)


async def pending(dsn: str, migrations: Sequence[Migration]) -> list[Migration]:
    """What `migrate` would apply."""
    with away():
        connection = await asyncpg.connect(dsn, timeout=10, target_session_attrs=WRITABLE)
        try:
            if await connection.fetchval("SELECT to_regclass('penstock.schema_migration')") is None:
                return list(migrations)
            return _missing(migrations, await _applied(connection))
        finally:
            await connection.close(timeout=5)


async def _migrate(
    connection: asyncpg.Connection[asyncpg.Record],
    migrations: Sequence[Migration],
    lock_timeout: float,
    tries: int,
) -> list[str]:
    await connection.execute(_LEDGER)
    missing = _missing(migrations, await _applied(connection))
    for migration in missing:
        await _apply(connection, migration, lock_timeout, tries)
        log.info(
            "migration_applied", room=migration.room, version=migration.version, name=migration.name
        )
    return [f"{m.room} {m.version:04} {m.name}" for m in missing]


async def _applied(connection: asyncpg.Connection[asyncpg.Record]) -> dict[tuple[str, int], str]:
    rows = await connection.fetch("SELECT room, version, sha256 FROM penstock.schema_migration")
    return {(r["room"], r["version"]): r["sha256"] for r in rows}


def _missing(
    migrations: Sequence[Migration], applied: dict[tuple[str, int], str]
) -> list[Migration]:
    by_version = {(m.room, m.version): m for m in migrations}
    rooms = {m.room for m in migrations}
    newer = sorted(key for key in applied if key[0] in rooms and key not in by_version)
    if newer:
        room, version = newer[0]
        raise Conflict(
            f"The database has migration {version} of {room}, which this version of Penstock does"
            f" not know.",
            hint="Run the newer Penstock, or restore the backup taken before it.",
        )
    for key, sha256 in applied.items():
        if key in by_version and by_version[key].sha256 != sha256:
            raise Conflict(
                f"Migration {key[1]} of {key[0]} was changed after it was applied.",
                hint="Restore the file; changes go into a new migration.",
            )
    return [m for key, m in by_version.items() if key not in applied]


async def _apply(
    connection: asyncpg.Connection[asyncpg.Record],
    migration: Migration,
    lock_timeout: float,
    tries: int,
) -> None:
    for left in reversed(range(tries)):
        try:
            await connection.execute(f"SET lock_timeout = '{int(lock_timeout * 1000)}ms'")
            if migration.transactional:
                async with connection.transaction():
                    await _run(connection, migration)
            else:
                await _run(connection, migration)
        except asyncpg.LockNotAvailableError:
            log.warning(
                "migration_waits", room=migration.room, version=migration.version, tries_left=left
            )
            if not left:
                raise Conflict(
                    f"Migration {migration.version} of {migration.room} could not lock its tables.",
                    hint="A long transaction holds them; end it and run `penstock migrate` again.",
                ) from None
            await asyncio.sleep(1)
        else:
            return


async def _run(connection: asyncpg.Connection[asyncpg.Record], migration: Migration) -> None:
    await connection.execute(migration.text)
    await connection.execute(
        "INSERT INTO penstock.schema_migration (room, version, name, sha256) VALUES ($1, $2, $3,"
        " $4)",
        migration.room,
        migration.version,
        migration.name,
        migration.sha256,
    )
