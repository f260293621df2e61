"""`penstock rekey`: change the key that seals the credentials of data sources.

Set the new key as PENSTOCK_SECRET_KEY and the old one as PENSTOCK_SECRET_KEYS_OLD, restart the
control planes, run `penstock rekey`, then drop the old one. Credentials can be used at every step.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.home import Home, default_home
from penstock.cli.output import FAILED, USAGE, Json, complain, emit, out, patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.sources.key_rotation import Rekeyed
    from penstock.wiring.settings import Settings


def rekey(
    *,
    new_key: Annotated[bool, Parameter(negative="", help="Only print a fresh key.")] = False,
    json: Json = False,
) -> int:
    """Seal all credentials with the current key, whichever key sealed them before."""
    from penstock.kit import vault
    from penstock.wiring import settings as config

    if new_key:
        key = vault.new_key()
        emit(
            {"key": key}, as_json=json, render=lambda: out.print(key, markup=False, soft_wrap=True)
        )
        return 0
    settings = config.load()
    if settings.database_url is not None and settings.secret_key is None:
        complain("PENSTOCK_SECRET_KEY is not set.", "Make a key: penstock rekey --new-key")
        return USAGE
    try:
        with patience("Sealing anew"):
            done = asyncio.run(_rekey(settings))
    except vault.SecretKeyMissing as e:
        complain(f"{e.message} Nothing was changed.", e.hint)
        return FAILED
    text = f"{done.anew} sealed with the current key, {done.already} already were."
    emit({"anew": done.anew, "already": done.already}, as_json=json, render=lambda: out.print(text))
    return 0


def secret_keys(settings: Settings, home: Home) -> list[str]:
    """The keys in force on this machine: those of the settings, else the one that the home made for
    itself."""
    from pydantic import SecretStr

    from penstock.kit.vault import new_key

    if settings.secret_key is None:
        home.make()
        own = SecretStr(home.secret("secret_key", new_key))
        settings = settings.model_copy(update={"secret_key": own})
    return settings.secret_keys


async def _rekey(settings: Settings) -> Rekeyed:
    from penstock.kit.db import Db
    from penstock.kit.vault import Vault
    from penstock.sources.key_rotation import rekey

    home = default_home()
    async with _database(settings, home) as dsn, Db(dsn, size=1) as db:
        return await rekey(db, Vault(secret_keys(settings, home)))


@asynccontextmanager
async def _database(settings: Settings, home: Home) -> AsyncIterator[str]:
    """The embedded server that `penstock up` runs can be used beside it; otherwise it is started
    for a moment."""
    from penstock.kit.postgres import Cluster, database, locate

    running = home.running()
    if settings.database_url is None and running is not None and running.database == "embedded":
        yield Cluster(home.postgres, locate()).dsn()
        return
    async with database(settings) as dsn:
        yield dsn
