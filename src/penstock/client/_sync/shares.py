"""Shares: who may use or edit a data source, mapping or recipe of another user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, assert_never

if TYPE_CHECKING:
    from penstock.client import shapes
    from penstock.client._sync.transport import Transport
    from penstock.client.words import ShareRole

    Shared = Literal["source", "mapping", "recipe"]


class Shares:
    """`username` is a user name, or `*` for everyone."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def all(self, what: Shared, id_: int | str) -> list[shapes.Share]:
        path = {"id": id_}
        answer: list[shapes.Share]
        match what:
            case "source":
                answer = self._call("GET", "/api/data-sources/{id}/shares", path)
            case "mapping":
                answer = self._call("GET", "/api/mappings/{id}/shares", path)
            case "recipe":
                answer = self._call("GET", "/api/recipes/{id}/shares", path)
            case _:
                assert_never(what)
        return answer

    def put(
        self, what: Shared, id_: int | str, username: str, role: ShareRole = "use"
    ) -> shapes.Share:
        """Share with a user, to use or edit; replaces an earlier share."""
        path = {"id": id_, "username": username}
        answer: shapes.Share
        match what:
            case "source":
                answer = self._call(
                    "PUT", "/api/data-sources/{id}/shares/{username}", path, json={"role": role}
                )
            case "mapping":
                answer = self._call(
                    "PUT", "/api/mappings/{id}/shares/{username}", path, json={"role": role}
                )
            case "recipe":
                answer = self._call(
                    "PUT", "/api/recipes/{id}/shares/{username}", path, json={"role": role}
                )
            case _:
                assert_never(what)
        return answer

    def delete(self, what: Shared, id_: int | str, username: str) -> shapes.Unshared:
        """Holds at once, for what is queued and running as well."""
        path = {"id": id_, "username": username}
        answer: shapes.Unshared
        match what:
            case "source":
                answer = self._call("DELETE", "/api/data-sources/{id}/shares/{username}", path)
            case "mapping":
                answer = self._call("DELETE", "/api/mappings/{id}/shares/{username}", path)
            case "recipe":
                answer = self._call("DELETE", "/api/recipes/{id}/shares/{username}", path)
            case _:
                assert_never(what)
        return answer

    def _call(
        self, method: str, template: str, path: dict[str, Any], *, json: object = None
    ) -> Any:
        return (self._transport.call(method, template, path=path, json=json))["data"]
