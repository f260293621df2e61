"""Authentication of callers; `permissions` decides what they may do.

Access is denied by default: a request without credentials is 401, and so is every call of the
internal API when no service token is configured. An invalid token is 401 too, whatever other
headers the request has.
"""

from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from penstock.accounts.browser_sessions import LOGIN_HINT
from penstock.accounts.service import Component, ServiceCaller
from penstock.api.callers.browser_requests import check_same_origin, cookie_name
from penstock.api.callers.credentials import PROXY_SECRET
from penstock.api.callers.identity import OPERATOR, Identity, Role
from penstock.api.callers.rate_limits import LoginAttempt
from penstock.api.services import Services, ServicesDep
from penstock.kit.errors import (
    AuthenticationRequired,
    InvalidComponent,
    InvalidToken,
    PermissionDenied,
)

__all__ = [
    "Caller",
    "Component",
    "MayShowToken",
    "Service",
    "ServiceCaller",
    "identify",
    "process_of",
    "service",
    "service_of",
]

_public = HTTPBearer(
    scheme_name="token",
    description="An API key (pst_…), a token of the identity provider, or the operator's token.",
    auto_error=False,
)
_internal = HTTPBearer(
    scheme_name="service", description="A service token of the deployment.", auto_error=False
)


MayShowToken = Depends(_public)
"""For an open route that reads a token if there is one."""


async def identify(request: Request, services: Services) -> Identity:
    """Cached per request."""
    state = request.scope["state"]
    if "identity" not in state:
        state["identity"] = await _identify(request, services)
        if services.limits is not None:
            await services.limits.check_user(state["identity"])
    identity: Identity = state["identity"]
    return identity


async def caller(
    request: Request,
    services: ServicesDep,
    _: Annotated[HTTPAuthorizationCredentials | None, Depends(_public)],
) -> Identity:
    return await identify(request, services)


Caller = Annotated[Identity, Depends(caller)]


def check_one_credential(request: Request) -> None:
    """Of two, a proxy in front may have checked the other one."""
    if len(request.headers.getlist("authorization")) > 1:
        raise InvalidToken("The header Authorization was sent more than once.")


async def _identify(request: Request, services: Services) -> Identity:
    check_one_credential(request)
    headers = None if services.people is None else services.people.headers
    credentials = await _public(request)
    if credentials is not None:
        identity = await _by_token(request, credentials.credentials, services)
    else:
        identity = await _by_header(request, services) or await _by_session(request, services)
    return identity if headers is None else headers.lowered(request, identity)


async def _by_header(request: Request, services: Services) -> Identity | None:
    if "x-username" not in request.headers:
        return None
    attempt = LoginAttempt(request, services, request.headers.get(PROXY_SECRET, ""))
    headers = None if services.people is None else services.people.headers
    try:
        identity = None if headers is None else await headers.identify(request)
    except AuthenticationRequired:
        attempt.failed()
        raise
    if identity is None:
        attempt.failed()
        raise AuthenticationRequired(
            "X-Username is not trusted from this address: send Authorization: Bearer <token>.",
            hint="For a proxy that sets it: PENSTOCK_TRUSTED_HEADERS=true with"
            " PENSTOCK_TRUSTED_PROXIES or PENSTOCK_TRUSTED_PROXY_SECRET.",
        )
    attempt.succeeded()
    return identity


async def _by_session(request: Request, services: Services) -> Identity:
    sessions = None if services.people is None else services.people.sessions
    cookie = request.cookies.get(cookie_name(request))
    if sessions is None or cookie is None:
        raise AuthenticationRequired(
            "No credentials were sent: send Authorization: Bearer <token>."
        )
    check_same_origin(request)
    attempt = LoginAttempt(request, services, cookie)
    if not await sessions.is_open(cookie):
        attempt.failed()
        raise InvalidToken("This browser session is unknown or has ended.", hint=LOGIN_HINT)
    attempt.succeeded()
    return Identity(username=OPERATOR, role=Role.OPS, via="session")


async def _by_token(request: Request, token: str, services: Services) -> Identity:
    attempt = LoginAttempt(request, services, token)
    try:
        identity = await _owner_of(token, services)
    except AuthenticationRequired:
        attempt.failed()
        raise
    attempt.succeeded()
    return identity


async def _owner_of(token: str, services: Services) -> Identity:
    for authenticator in services.authenticators:
        if identity := await authenticator.identify(token):
            return identity
    raise InvalidToken("Unknown or revoked token.")


async def service(
    request: Request,
    services: ServicesDep,
    _: Annotated[HTTPAuthorizationCredentials | None, Depends(_internal)],
    x_component: Annotated[str, Header(description="worker or wrapper", examples=["worker"])] = "",  # noqa: ARG001 - for the description
) -> ServiceCaller:
    return await service_of(request, services)


async def service_of(request: Request, services: Services) -> ServiceCaller:
    """Cached per request."""
    state = request.scope["state"]
    if "service" not in state:
        state["service"] = await _service(request, services)
    caller: ServiceCaller = state["service"]
    return caller


async def _service(request: Request, services: Services) -> ServiceCaller:
    if not services.service_tokens:
        raise AuthenticationRequired(
            "This control plane has no internal API.", hint="Set PENSTOCK_SERVICE_TOKEN."
        )
    check_one_credential(request)
    credentials = await _internal(request)
    if credentials is None:
        raise AuthenticationRequired(
            "The internal API needs a service token: Authorization: Bearer <token>."
        )
    caller = await process_of(request, credentials.credentials, services)
    component = request.headers.get("x-component", "")
    if component not in ("worker", "wrapper"):
        raise InvalidComponent("X-Component must be worker or wrapper.")
    if component != caller.component:
        raise PermissionDenied(
            f"X-Component is {component}, but the token is a {caller.component}'s."
        )
    return caller


Service = Annotated[ServiceCaller, Depends(service)]


async def process_of(request: Request, token: str, services: Services) -> ServiceCaller:
    """The worker or graph server that this token authenticates."""
    attempt = LoginAttempt(request, services, token)
    for tokens in services.service_tokens:
        if process := await tokens.who(token):
            attempt.succeeded()
            return process
    attempt.failed()
    raise InvalidToken("Unknown service token.")
