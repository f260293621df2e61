"""`penstock login` and `penstock key rotate-operator`: browser sign-in and the operator token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.home import connect, default_home
from penstock.cli.output import MISSING, Json, complain, emit, out

if TYPE_CHECKING:
    from penstock.cli.documents import LoginLink
    from penstock.client import Client


def login(*, json: Json = False) -> int:
    """Print a link that signs a browser in, once, as the operator."""
    with connect() as ps:
        link = login_link(ps)
    emit(link, as_json=json, render=lambda: out.print(link["url"], markup=False, soft_wrap=True))
    return 0


def login_link(ps: Client) -> LoginLink:
    link = ps.transport.call("POST", "/api/login-links")["data"]
    return {"url": f"{ps.url}{link['path']}", "expires_at": link["expires_at"]}


def rotate_operator(*, json: Json = False) -> int:
    """Replace this machine's operator token; sessions and login links of the old one end."""
    home = default_home()
    file = home.secret_file("operator_token")
    if not file.exists():
        complain(f"There is no operator token in {home.folder}.", "penstock up makes one.")
        return MISSING
    home.rotate_secret("operator_token")
    text = (
        f"The operator token in {file} is a new one. Clients that were started before must be "
        "started again."
    )
    emit(
        {"file": str(file)},
        as_json=json,
        render=lambda: out.print(text, markup=False, soft_wrap=True),
    )
    return 0
