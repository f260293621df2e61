"""Shares: who may use or edit a data source, mapping or recipe of another user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from penstock.client._async.resource import AsyncResource

if TYPE_CHECKING:
    from penstock.client import shapes
    from penstock.client.words import ShareRole

    Shared = Literal["source", "mapping", "recipe"]

SHARES = {
    "source": "/api/data-sources/{id}/shares",
    "mapping": "/api/mappings/{id}/shares",
    "recipe": "/api/recipes/{id}/shares",
}
WITH_USER = {
    "source": "/api/data-sources/{id}/shares/{username}",
    "mapping": "/api/mappings/{id}/shares/{username}",
    "recipe": "/api/recipes/{id}/shares/{username}",
}


class AsyncShares(AsyncResource):
    """`username` is a user name, or `*` for everyone."""

    async def all(self, what: Shared, id_: int | str) -> list[shapes.Share]:
        shares: list[shapes.Share] = await self._call("GET", SHARES[what], id=id_)
        return shares

    async def put(
        self, what: Shared, id_: int | str, username: str, role: ShareRole = "use"
    ) -> shapes.Share:
        """Share with a user, to use or edit; replaces an earlier share."""
        share: shapes.Share = await self._call(
            "PUT", WITH_USER[what], id=id_, username=username, json={"role": role}
        )
        return share

    async def delete(self, what: Shared, id_: int | str, username: str) -> shapes.Unshared:
        """Holds at once, for what is queued and running as well."""
        answer: shapes.Unshared = await self._call(
            "DELETE", WITH_USER[what], id=id_, username=username
        )
        return answer
