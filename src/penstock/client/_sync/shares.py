"""Who may use or edit a data source, mapping or recipe that is not theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from penstock.client import shapes
    from penstock.client._sync.transport import Transport
    from penstock.client.words import ShareRole

    Shared = Literal["source", "mapping", "recipe"]

_PATHS = {
    "source": "/api/data-sources/{id}/shares",
    "mapping": "/api/mappings/{id}/shares",
    "recipe": "/api/recipes/{id}/shares",
}


class Shares:
    """`username` is somebody's, or `*` for everybody."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def all(self, what: Shared, id_: int | str) -> list[shapes.Share]:
        shares: list[shapes.Share] = self._call("GET", _PATHS[what], {"id": id_})
        return shares

    def put(self, what: Shared, id_: int | str, username: str, role: ShareRole = "use") -> shapes.Share:
        """Let somebody use it, or also edit it; an earlier share with them is replaced."""
        path = {"id": id_, "username": username}
        share: shapes.Share = self._call("PUT", f"{_PATHS[what]}/{{username}}", path, json={"role": role})
        return share

    def delete(self, what: Shared, id_: int | str, username: str) -> shapes.Unshared:
        """Holds at once, for what is queued and running as well."""
        path = {"id": id_, "username": username}
        answer: shapes.Unshared = self._call("DELETE", f"{_PATHS[what]}/{{username}}", path)
        return answer

    def _call(self, method: str, template: str, path: dict[str, Any], *, json: object = None) -> Any:
        return (self._transport.call(method, template, path=path, json=json))["data"]
