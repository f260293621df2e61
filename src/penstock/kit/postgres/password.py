"""The superuser's password: random, in a file of the server's account, and the only way in.

The file has the form of `.pgpass`, so a DSN names the file and carries no secret itself. A cluster
of an earlier version, or one from an archive, gets its password from a single-user server before
the first ordinary one listens: at no moment does a server run that lets anybody in without it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import secrets
from typing import TYPE_CHECKING
from urllib.parse import quote

from penstock.kit import logging
from penstock.kit.postgres import failure, holder, process, server
from penstock.kit.postgres.errors import PostgresFailed
from penstock.kit.postgres.paths import open_own
from penstock.kit.postgres.settings import SUPERUSER, ClusterSettings, Shutdown

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.kit.postgres.binaries import Binaries
    from penstock.kit.postgres.holder import Lock
    from penstock.kit.postgres.paths import Places

log = logging.get(__name__)
_ITERATIONS = 4096
_FIRST_SECONDS = 60.0
_NO_ENTRY = "could not look up effective user ID"
_RULES = """\
# Written by Penstock at every start; changes are lost.
local all all scram-sha-256
local replication all scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
host all all ::1/128 scram-sha-256
"""


async def require_password(at: Places, binaries: Binaries, lock: Lock) -> None:
    """Let nobody in without the password, and make one if there is none.

    Only with the lock held and no server running.
    """
    _write(at, at.rules, _RULES)
    if at.password.exists():
        return
    holder.clear_remains(at)
    password = secrets.token_urlsafe(32)
    await _set(at, binaries, lock, verifier(password, os.urandom(16)))
    draft = at.password.with_suffix(".new")
    _write(at, draft, f"*:*:*:{SUPERUSER}:{password}\n")
    draft.replace(at.password)
    log.info("postgres_password_made", file=str(at.password))


def read_password(at: Places) -> str:
    with open(at.password, opener=open_own) as file:
        return file.read().strip().rpartition(":")[2]


def verifier(password: str, salt: bytes) -> str:
    """What PostgreSQL keeps of a password (RFC 5803); the password itself is never sent to it."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    in_base64 = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return "SCRAM-SHA-256${}:{}${}:{}".format(_ITERATIONS, *in_base64)


async def _set(at: Places, binaries: Binaries, lock: Lock, secret: str) -> None:
    command = [str(binaries.postgres), "--single", "-D", str(at.data), "postgres"]
    statement = f"ALTER ROLE {SUPERUSER} PASSWORD '{secret}'"
    code, output = await process.run(
        at.account, command, cwd=at.folder, keep=lock.fd, feed=f"{statement}\n".encode()
    )
    if _NO_ENTRY in output:
        await _set_as_unknown_user(at, binaries, lock, statement)
        return
    if code:
        raise failure.explain(output, at.folder)
    if "ERROR:" in output:
        raise PostgresFailed(
            f"The password of {SUPERUSER} could not be set: {output.strip()[-500:]}"
        )


async def _set_as_unknown_user(at: Places, binaries: Binaries, lock: Lock, statement: str) -> None:
    """For an account without an entry in /etc/passwd, as whom there is no single-user server.

    Such a cluster comes from an archive. Once in its life a server with room for one connection,
    which is ours, takes it without a password; the account's private folder is all that guards it.
    """
    rules = at.folder / "pg_hba.first"
    _write(at, rules, f"local postgres {SUPERUSER} trust\n")
    alone = (
        "max_connections=1",
        "superuser_reserved_connections=0",
        "max_wal_senders=0",
        f"hba_file={rules}",
    )
    command = [str(binaries.postgres), "-D", str(at.data), *ClusterSettings().options(at.sockets)]
    started = await server.launch(
        [*command, *(part for option in alone for part in ("-c", option))], at, lock
    )
    try:
        where = f"postgresql:///postgres?host={quote(str(at.sockets))}&user={SUPERUSER}"
        connection = await started.answer(where, asyncio.get_running_loop().time() + _FIRST_SECONDS)
        if connection is None:
            raise failure.explain(started.last_words(), at.folder)
        await connection.execute(statement)
        await connection.close()
    finally:
        await started.end(Shutdown.FAST, _FIRST_SECONDS)
        rules.unlink()


def _write(at: Places, file: Path, text: str) -> None:
    with open(file, "w", opener=open_own) as out:
        at.account.own(out.fileno())
        out.write(text)
