"""The session cookie of a browser, and which of its requests may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.kit.errors import PermissionDenied

if TYPE_CHECKING:
    from starlette.requests import Request

READS = frozenset({"GET", "HEAD"})


def cookie_name(request: Request) -> str:
    """With our port: browsers send the cookies of a host to all its ports, and two homes are two
    ports."""
    server = request.scope.get("server")
    return f"penstock_session_{server[1] if server else 0}"


def check_same_origin(request: Request) -> None:
    """SameSite keeps other sites away, and other ports of this host are the same site.

    A write must come from a page of ours. A read may also be a page that is opened, by its address
    or a link.
    """
    headers = request.headers
    site = headers.get("sec-fetch-site")
    is_opened_page = headers.get("sec-fetch-mode") == "navigate" and request.method in READS
    if site not in (None, "none", "same-origin") and not is_opened_page:
        raise _other_page()
    if request.method not in READS and urlsplit(headers.get("origin", "")).netloc != headers.get(
        "host"
    ):
        raise _other_page()


def _other_page() -> PermissionDenied:
    return PermissionDenied(
        "This request comes from another page; a session works on pages of this control plane only.",
        hint="Programs send Authorization: Bearer <token>.",
    )
