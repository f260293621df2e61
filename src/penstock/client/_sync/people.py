"""Users, their keys, and what they like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client.decoding import decode
from penstock.client.models import User

if TYPE_CHECKING:
    from penstock.client._sync.transport import Transport


class Users:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, username: str, email: str | None = None, *, role: str = "analyst", **more: Any) -> User:
        body = {"username": username, "email": email, "role": role} | more
        return decode(User, self._transport.call("POST", "/api/users", json=body))

    def bootstrap(self, username: str, email: str | None = None, **more: Any) -> User:
        """The first user; only while there are none."""
        body = {"username": username, "email": email} | more
        return decode(User, self._transport.call("POST", "/api/users/bootstrap", json=body))

    def get(self, username: str) -> User:
        return decode(User, self._call("GET", "/api/users/{username}", username))

    def all(self, *, limit: int = 100, offset: int = 0, is_active: bool | None = None) -> list[User]:
        query = {"limit": limit, "offset": offset, "is_active": is_active}
        answer = self._transport.call("GET", "/api/users", query=query)
        return [decode(User, item) for item in answer["data"]]

    def update(self, username: str, **changes: Any) -> User:
        return decode(User, self._call("PUT", "/api/users/{username}", username, json=changes))

    def deactivate(self, username: str) -> User:
        return decode(User, self._call("DELETE", "/api/users/{username}", username))

    def set_role(self, username: str, role: str) -> User:
        return decode(User, self._call("PUT", "/api/users/{username}/role", username, json={"role": role}))

    def create_key(self, username: str, name: str, **options: Any) -> dict[str, Any]:
        """The key itself is in this answer, and never in another."""
        body = {"name": name} | options
        made: dict[str, Any] = self._call("POST", "/api/users/{username}/api-keys", username, json=body)
        return made

    def keys(self, username: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (self._call("GET", "/api/users/{username}/api-keys", username))["data"]
        return found

    def revoke_keys(self, username: str) -> None:
        self._call("DELETE", "/api/users/{username}/api-keys", username)

    def revoke_key(self, username: str, key_id: object) -> None:
        self._call("DELETE", "/api/users/{username}/api-keys/{key_id}", username, key_id=key_id)

    def _call(self, method: str, template: str, username: str, *, json: object = None, **path: object) -> Any:
        return self._transport.call(method, template, path={"username": username} | path, json=json)


class Favorites:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def all(self, resource_type: str | None = None) -> list[dict[str, Any]]:
        answer = self._transport.call("GET", "/api/favorites", query={"resource_type": resource_type})
        found: list[dict[str, Any]] = answer["data"]
        return found

    def add(self, resource_type: str, resource_id: int) -> None:
        body = {"resource_type": resource_type, "resource_id": resource_id}
        self._transport.call("POST", "/api/favorites", json=body)

    def drop(self, resource_type: str, resource_id: int) -> None:
        path = {"resource_type": resource_type, "resource_id": resource_id}
        self._transport.call("DELETE", "/api/favorites/{resource_type}/{resource_id}", path=path)
