"""The session cookie, and the same-origin check of requests that use it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.kit.errors import PermissionDenied

if TYPE_CHECKING:
    from starlette.requests import Request

READS = frozenset({"GET", "HEAD"})


def cookie_name(request: Request) -> str:
    """Includes our port: browsers send a host's cookies to all of its ports, and each control plane
    on a machine has its own port."""
    server = request.scope.get("server")
    return f"penstock_session_{server[1] if server else 0}"


def check_same_origin(request: Request) -> None:
    """SameSite excludes other sites, but other ports of this host count as the same site.

    A write must come from one of our pages. A read may also be a navigation to a page.
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
        "This request comes from another origin; a session is valid on this control plane's pages"
        " only.",
        hint="Programs send Authorization: Bearer <token>.",
    )
