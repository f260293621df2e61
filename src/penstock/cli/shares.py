"""`penstock share`: grants use or edit rights on a resource."""

from __future__ import annotations

from typing import Any, Literal

from rich.table import Table

from penstock.cli.home import session
from penstock.cli.output import Json, emit, out
from penstock.client.words import ShareRole  # noqa: TC001 - the command line reads it

_PATHS = {"source": "data-sources", "mapping": "mappings", "recipe": "recipes"}
What = Literal["source", "mapping", "recipe"]


def add(what: What, id_: str, username: str, *, role: ShareRole = "use", json: Json = False) -> int:
    """Share a source, mapping or recipe with a user, or with everybody: '*'."""
    with session() as http:
        share = http.call("PUT", f"{_path(what, id_)}/{username}", json={"role": role})["data"]
    emit(
        share,
        as_json=json,
        render=lambda: out.print(f"{_who(share)} may {share['role']} {what} {id_}."),
    )
    return 0


def list_(what: What, id_: str, *, json: Json = False) -> int:
    """List who a source, mapping or recipe is shared with."""
    with session() as http:
        shares = http.call("GET", _path(what, id_))["data"]
    emit(shares, as_json=json, render=lambda: _print_shares(shares))
    return 0


def remove(what: What, id_: str, username: str, *, json: Json = False) -> int:
    """Stop sharing with a user; it holds at once, for what is queued and running as well."""
    with session() as http:
        answer = http.call("DELETE", f"{_path(what, id_)}/{username}")["data"]
    text = (
        "It is no longer shared with them." if answer["deleted"] else "It was not shared with them."
    )
    emit(answer, as_json=json, render=lambda: out.print(text))
    return 0


def _path(what: What, id_: str) -> str:
    return f"/api/{_PATHS[what]}/{id_}/shares"


def _who(share: dict[str, Any]) -> str:
    return "Everybody" if share["username"] == "*" else str(share["username"])


def _print_shares(shares: list[dict[str, Any]]) -> None:
    table = Table("user", "may", "since", "by", box=None)
    for share in shares:
        table.add_row(_who(share), share["role"], share["created_at"], share["created_by"])
    out.print(table)
