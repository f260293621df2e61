"""Browser login with one-time links.

`penstock login` requests a link with the operator token, and a browser opens it. These routes are
not in the OpenAPI description.
"""

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from penstock.accounts.browser_sessions import MAX_SECRET, BrowserSessions
from penstock.api.callers.auth import MayShowToken, identify
from penstock.api.callers.browser_requests import check_same_origin, cookie_name
from penstock.api.callers.client_address import client_address
from penstock.api.callers.identity import OPERATOR_TOKEN
from penstock.api.callers.rate_limits import LoginAttempt
from penstock.api.errors import reply
from penstock.api.requests.request_bodies import StrictRoute
from penstock.api.schema.envelope import Data, request_id
from penstock.api.services import HasPeople, People, ServicesDep
from penstock.kit.errors import AuthenticationRequired, InvalidToken, NotFound, PermissionDenied
from penstock.kit.security_headers import is_behind_tls

router = APIRouter(route_class=StrictRoute, include_in_schema=False)
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Penstock</title>
<h1>Signed in</h1>
<p>This browser is signed in as the operator of this Penstock.</p>
<p><a href="/api/openapi.json">The API</a></p>
</html>
"""


class Link(BaseModel):
    path: str = Field(description="Relative to the control plane's URL; works once.")
    expires_at: str


@router.post("/api/login-links", status_code=201, dependencies=[MayShowToken])
async def create_link(
    request: Request, response: Response, services: ServicesDep, people: HasPeople
) -> Data[Link]:
    identity = await identify(request, services)
    if identity.via != OPERATOR_TOKEN:
        raise PermissionDenied("Creating a login link needs the operator token.")
    link = await _sessions(people).create_link()
    response.headers["Cache-Control"] = "no-store"
    path = f"/login?token={link.token}"
    return Data(data=Link(path=path, expires_at=link.expires_at.isoformat()))


@router.get("/login")
async def open_link(request: Request, services: ServicesDep, people: HasPeople) -> Response:
    """A page, and the session cookie."""
    token = request.query_params.get("token", "")
    if not 0 < len(token) <= MAX_SECRET:
        raise AuthenticationRequired(
            "This login link has no token.", hint="Print a link: penstock login"
        )
    attempt = LoginAttempt(request, services, token)
    sessions = _sessions(people)
    address = client_address(request.scope, services.proxies)
    try:
        session = await sessions.open(token, address=str(address))
    except InvalidToken as e:
        attempt.failed()
        return reply(e, request_id(request))
    answer = HTMLResponse(PAGE)
    answer.set_cookie(
        cookie_name(request),
        session.cookie,
        max_age=int(sessions.session_life.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=is_behind_tls(request.scope),
    )
    return answer


@router.post("/logout", status_code=204)
async def logout(request: Request, people: HasPeople) -> Response:
    """End the session of this browser, if it has one."""
    name = cookie_name(request)
    cookie = request.cookies.get(name)
    if cookie is not None:
        check_same_origin(request)
        await _sessions(people).close(cookie)
    answer = Response(status_code=204)
    answer.delete_cookie(name, httponly=True, samesite="strict")
    return answer


def _sessions(people: People) -> BrowserSessions:
    if people.sessions is None:
        raise NotFound("This control plane has no operator token, so it has no login links.")
    return people.sessions
