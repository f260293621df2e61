"""Key rotation: re-encrypt the credentials of all sources with the current key, in one
transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.sources.repository import SQL, row_name

if TYPE_CHECKING:
    from penstock.kit.db import Db
    from penstock.kit.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekeyed:
    anew: int
    already: int
    """Decrypted as well, so that a damaged or misplaced one is detected."""


async def rekey(db: Db, vault: Vault) -> Rekeyed:
    """Re-encrypt all credentials; the control plane may keep running if it has both keys."""
    anew = already = 0
    async with db.transaction() as tx:
        for row in await tx.fetch(SQL.source_sealed):
            secret = vault.open(row["credentials"], row=row_name(row["data_source_id"]))
            if vault.is_current(row["credentials"]):
                already += 1
                continue
            sealed = vault.seal(secret, row=row_name(row["data_source_id"]))
            await tx.changed(
                SQL.source_reseal, data_source_id=row["data_source_id"], credentials=sealed
            )
            anew += 1
    return Rekeyed(anew=anew, already=already)
