"""The database role of an autoscaler, which reads the view `penstock.scaling` and nothing else.

The role is checked after it was granted the view and before that is committed: one that can read
more, because somebody granted it more or because it is a member of another role, is refused. Its
password is sent as a SCRAM verifier, so that it is not in the server's log.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from penstock.kit.db import WRITABLE, away
from penstock.kit.errors import Conflict, InvalidInput, PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Sequence

    Connection = asyncpg.Connection[asyncpg.Record]

VIEW = "penstock.scaling"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_RESERVED = frozenset({"public", "none", "current_role", "current_user", "session_user"})
_ITERATIONS = 4096
_MOST_NAMED = 5
_SETTINGS = ("default_transaction_read_only = on", "statement_timeout = '10s'")
_ROLE = "SELECT oid, rolname = current_user AS own, rolsuper FROM pg_roles WHERE rolname = $1"
_MEMBER_OF = """
SELECT r.rolname FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
WHERE m.member = $1 ORDER BY 1"""
_READABLE = f"""
SELECT n.nspname || '.' || c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.oid <> '{VIEW}'::regclass
  AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND has_schema_privilege($1::oid, n.oid, 'USAGE')
  AND (has_table_privilege($1::oid, c.oid, 'SELECT')
       OR has_any_column_privilege($1::oid, c.oid, 'SELECT'))
ORDER BY 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRole:
    name: str
    created: bool


async def grant(dsn: str, role: str, password: str | None = None) -> ScalingRole:
    """Let the role read the view, and create it if there is none; idempotent."""
    if not _NAME.fullmatch(role) or role in _RESERVED or role.startswith("pg_"):
        raise InvalidInput(
            f"{role[:80]!r} cannot be the name of a role.",
            hint="Use lower-case letters, digits and underscores, for example: keda",
        )
    if password is not None and (not password or not password.isascii()):
        raise InvalidInput("The role's password must be ASCII characters, at least one.")
    with away():
        connection = await asyncpg.connect(dsn, timeout=10, target_session_attrs=WRITABLE)
        try:
            async with connection.transaction():
                return await _grant(connection, role, password)
        except asyncpg.InsufficientPrivilegeError as e:
            user = await connection.fetchval("SELECT current_user")
            raise PermissionDenied(
                f"The database user {user} may not do this: {e}.",
                hint=f"Let an administrator run: CREATE ROLE {role} LOGIN PASSWORD '…'; then run"
                " `penstock migrate` with the role and without a password.",
            ) from None
        finally:
            await connection.close(timeout=5)


async def _grant(connection: Connection, role: str, password: str | None) -> ScalingRole:
    if await connection.fetchval("SELECT to_regclass($1)", VIEW) is None:
        raise Conflict(f"There is no view {VIEW} yet.", hint="Run `penstock migrate` first.")
    row = await connection.fetchrow(_ROLE, role)
    if row is None:
        await connection.execute(f"CREATE ROLE {role} LOGIN")
    elif row["own"] or row["rolsuper"]:
        reason = "a superuser" if row["rolsuper"] else "the role that runs Penstock"
        raise InvalidInput(f"{role} is {reason}.", hint="Name a role that may read only the view.")
    if password is not None:
        await connection.execute(f"ALTER ROLE {role} PASSWORD '{scram_verifier(password)}'")
    if row is None or password is not None:
        for setting in _SETTINGS:
            await connection.execute(f"ALTER ROLE {role} SET {setting}")
    database = await connection.fetchval("SELECT quote_ident(current_database())")
    await connection.execute(
        f"GRANT CONNECT ON DATABASE {database} TO {role};"
        f" GRANT USAGE ON SCHEMA penstock TO {role}; GRANT SELECT ON {VIEW} TO {role}"
    )
    await _check(connection, role)
    return ScalingRole(name=role, created=row is None)


async def _check(connection: Connection, role: str) -> None:
    """Raise if the role reads more than the view."""
    oid = await connection.fetchval("SELECT oid FROM pg_roles WHERE rolname = $1", role)
    memberships = [row[0] for row in await connection.fetch(_MEMBER_OF, oid)]
    if memberships:
        raise Conflict(
            f"{role} is a member of {_named(memberships)}, and may have their rights.",
            hint=f"REVOKE {memberships[0]} FROM {role}, or name another role.",
        )
    readable = [row[0] for row in await connection.fetch(_READABLE, oid)]
    if readable:
        raise Conflict(
            f"{role} can read more than {VIEW}: {_named(readable)}.",
            hint=f"REVOKE SELECT ON these FROM {role} (or FROM PUBLIC), or name another role.",
        )


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def scram_verifier(password: str, salt: bytes | None = None) -> str:
    """What PostgreSQL stores for a password (RFC 5803), computed here."""
    salt = secrets.token_bytes(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    salt64, stored64, server64 = (
        base64.b64encode(part).decode() for part in (salt, stored, server)
    )
    return f"SCRAM-SHA-256${_ITERATIONS}:{salt64}${stored64}:{server64}"
