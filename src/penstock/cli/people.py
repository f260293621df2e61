"""`penstock user`, `penstock key`: users, roles and API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.home import connect
from penstock.cli.output import Json, emit, out
from penstock.cli.tabular import table
from penstock.client.words import Role  # noqa: TC001 - the command line reads it

if TYPE_CHECKING:
    from penstock.client import shapes


def add_user(
    username: str,
    *,
    role: Role = "analyst",
    email: str | None = None,
    display_name: str | None = None,
    json: Json = False,
) -> int:
    """Add a user."""
    with connect() as ps:
        user = ps.users.create(username, email, role=role, display_name=display_name)
    next_step = f"penstock key create {user.username}"
    emit(
        user.raw,
        as_json=json,
        render=lambda: out.print(f"{user.username} is there. [dim]Next: {next_step}[/dim]"),
    )
    return 0


def list_users(
    *, active: bool | None = None, offset: int = 0, limit: int = 50, json: Json = False
) -> int:
    """List users, newest first; --active or --no-active for those alone."""
    query = {"is_active": active, "offset": offset, "limit": limit}
    with connect() as ps:
        page: shapes.UserList = ps.transport.call("GET", "/api/users", query=query)
    emit(page, as_json=json, render=lambda: _print_users(page["data"]))
    return 0


def change_role(username: str, role: Role, *, json: Json = False) -> int:
    """Give a user another role."""
    with connect() as ps:
        user = ps.users.set_role(username, role)
    emit(
        user.raw,
        as_json=json,
        render=lambda: out.print(f"{user.username} has the role {user.role}."),
    )
    return 0


def deactivate(username: str, *, json: Json = False) -> int:
    """Deactivate a user; what they own stays."""
    with connect() as ps:
        user = ps.users.deactivate(username)
    emit(user.raw, as_json=json, render=lambda: out.print(f"{user.username} is let in no more."))
    return 0


def create_key(username: str, *, name: str = "key", days: int = 90, json: Json = False) -> int:
    """Make an API key; it is printed once and kept nowhere."""
    with connect() as ps:
        key = ps.users.create_key(username, name, expires_in_days=days)
    emit(key, as_json=json, render=lambda: out.print(key["key"], markup=False, soft_wrap=True))
    return 0


def list_keys(username: str, *, json: Json = False) -> int:
    """List a user's API keys, newest first."""
    with connect() as ps:
        page: shapes.KeyList = {"data": ps.users.keys(username)}
    emit(page, as_json=json, render=lambda: _print_keys(page["data"]))
    return 0


def revoke_key(username: str, key_id: int | None = None, *, json: Json = False) -> int:
    """Revoke one API key of a user, or without a number all of them."""
    with connect() as ps:
        done = (
            ps.users.revoke_keys(username)
            if key_id is None
            else ps.users.revoke_key(username, key_id)
        )
    emit(done, as_json=json, render=lambda: out.print(f"{done['revoked']} revoked."))
    return 0


def _print_users(users: list[shapes.UserShown]) -> None:
    drawn = table("username", "role", "active", "email", "last login")
    for user in users:
        active = "yes" if user["is_active"] else "no"
        drawn.add_row(
            user["username"],
            user["role"],
            active,
            user["email"] or "",
            (user["last_login_at"] or "")[:19],
        )
    out.print(
        drawn
        if users
        else "[dim]There are no users. The first: penstock user add NAME --role ops[/dim]"
    )


def _print_keys(keys: list[shapes.ShownKey]) -> None:
    drawn = table("id", "name", "begins", "expires", "last used", "revoked")
    for key in keys:
        moments = [
            (moment or "")[:19]
            for moment in (key["expires_at"], key["last_used_at"], key["revoked_at"])
        ]
        drawn.add_row(str(key["id"]), key["name"], key["prefix"], *moments)
    out.print(drawn if keys else "[dim]There are no keys.[/dim]")
