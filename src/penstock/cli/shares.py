"""`penstock share`: grants use or edit rights on a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.table import Table

from penstock.cli.home import connect
from penstock.cli.output import Json, emit, out
from penstock.client.words import ShareRole  # noqa: TC001 - the command line reads it

if TYPE_CHECKING:
    from penstock.client import shapes

What = Literal["source", "mapping", "recipe"]


def add(what: What, id_: str, username: str, *, role: ShareRole = "use", json: Json = False) -> int:
    """Share a source, mapping or recipe with a user, or with everybody: '*'."""
    with connect() as ps:
        share = ps.shares.put(what, id_, username, role)
    emit(
        share,
        as_json=json,
        render=lambda: out.print(f"{_who(share)} may {share['role']} {what} {id_}."),
    )
    return 0


def list_(what: What, id_: str, *, json: Json = False) -> int:
    """List who a source, mapping or recipe is shared with."""
    with connect() as ps:
        shares = ps.shares.all(what, id_)
    emit(shares, as_json=json, render=lambda: _print_shares(shares))
    return 0


def remove(what: What, id_: str, username: str, *, json: Json = False) -> int:
    """Stop sharing with a user; it holds at once, for what is queued and running as well."""
    with connect() as ps:
        answer = ps.shares.delete(what, id_, username)
    text = (
        "It is no longer shared with them." if answer["deleted"] else "It was not shared with them."
    )
    emit(answer, as_json=json, render=lambda: out.print(text))
    return 0


def _who(share: shapes.Share) -> str:
    return "Everybody" if share["username"] == "*" else share["username"]


def _print_shares(shares: list[shapes.Share]) -> None:
    table = Table("user", "may", "since", "by", box=None)
    for share in shares:
        table.add_row(_who(share), share["role"], share["created_at"], share["created_by"])
    out.print(table)
