"""`penstock user`, `penstock key`: users, roles and API keys."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from penstock.cli.home import session
from penstock.cli.output import Json, emit, out
from penstock.client.words import Role  # noqa: TC001 - the command line reads it


def add_user(
    username: str,
    *,
    role: Role = "analyst",
    email: str | None = None,
    display_name: str | None = None,
    json: Json = False,
) -> int:
    """Add a user."""
    body = {"username": username, "role": role, "email": email, "display_name": display_name}
    with session() as http:
        user = http.call(
            "POST",
            "/api/users",
            json={name: value for name, value in body.items() if value is not None},
        )
    next_step = f"penstock key create {user['username']}"
    emit(
        user,
        as_json=json,
        render=lambda: out.print(f"{user['username']} is there. [dim]Next: {next_step}[/dim]"),
    )
    return 0


def list_users(
    *, active: bool | None = None, offset: int = 0, limit: int = 50, json: Json = False
) -> int:
    """List users, newest first; --active or --no-active for those alone."""
    with session() as http:
        page = http.call("GET", "/api/users", is_active=active, offset=offset, limit=limit)
    emit(page, as_json=json, render=lambda: _print_users(page["data"]))
    return 0


def change_role(username: str, role: Role, *, json: Json = False) -> int:
    """Give a user another role."""
    with session() as http:
        changed = http.call("PUT", f"/api/users/{username}/role", json={"role": role})
    emit(
        changed,
        as_json=json,
        render=lambda: out.print(f"{changed['username']} has the role {changed['role']}."),
    )
    return 0


def deactivate(username: str, *, json: Json = False) -> int:
    """Deactivate a user; what they own stays."""
    with session() as http:
        changed = http.call("DELETE", f"/api/users/{username}")
    emit(
        changed, as_json=json, render=lambda: out.print(f"{changed['username']} is let in no more.")
    )
    return 0


def create_key(username: str, *, name: str = "key", days: int = 90, json: Json = False) -> int:
    """Make an API key; it is printed once and kept nowhere."""
    with session() as http:
        key = http.call(
            "POST", f"/api/users/{username}/api-keys", json={"name": name, "expires_in_days": days}
        )
    emit(key, as_json=json, render=lambda: out.print(key["key"], markup=False, soft_wrap=True))
    return 0


def list_keys(username: str, *, json: Json = False) -> int:
    """List a user's API keys, newest first."""
    with session() as http:
        page = http.call("GET", f"/api/users/{username}/api-keys")
    emit(page, as_json=json, render=lambda: _print_keys(page["data"]))
    return 0


def revoke_key(username: str, key_id: int | None = None, *, json: Json = False) -> int:
    """Revoke one API key of a user, or without a number all of them."""
    path = f"/api/users/{username}/api-keys"
    with session() as http:
        done = http.call("DELETE", path if key_id is None else f"{path}/{key_id}")
    emit(done, as_json=json, render=lambda: out.print(f"{done['revoked']} revoked."))
    return 0


def _print_users(users: list[dict[str, Any]]) -> None:
    table = _table("username", "role", "active", "email", "last login")
    for user in users:
        active = "yes" if user["is_active"] else "no"
        table.add_row(
            user["username"],
            user["role"],
            active,
            user["email"] or "",
            (user["last_login_at"] or "")[:19],
        )
    out.print(
        table
        if users
        else "[dim]There are no users. The first: penstock user add NAME --role ops[/dim]"
    )


def _print_keys(keys: list[dict[str, Any]]) -> None:
    table = _table("id", "name", "begins", "expires", "last used", "revoked")
    for key in keys:
        moments = [(key[name] or "")[:19] for name in ("expires_at", "last_used_at", "revoked_at")]
        table.add_row(str(key["id"]), key["name"], key["prefix"], *moments)
    out.print(table if keys else "[dim]There are no keys.[/dim]")


def _table(*headings: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    return table
