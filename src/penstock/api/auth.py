"""Who calls. What they may do is in the matrix.

Nobody is let in by default: no credential is 401, and without a kind of service token in the settings the internal API
answers 401 to everybody. A token that is shown and does not count is 401 too, whatever headers stand beside it.
"""

from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from penstock.accounts.service import Component, ServiceCaller
from penstock.api.identity import Identity
from penstock.api.parts import HasParts, Parts
from penstock.kit.errors import AuthenticationRequired, InvalidComponent, InvalidToken, PermissionDenied

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
_internal = HTTPBearer(scheme_name="service", description="A service token of the deployment.", auto_error=False)


MayShowToken = Depends(_public)
"""For an open route to which a token may matter."""


async def identify(request: Request, parts: Parts) -> Identity:
    """Found out once a request, however many ask."""
    state = request.scope["state"]
    if "identity" not in state:
        state["identity"] = await _identify(request, parts)
    found: Identity = state["identity"]
    return found


async def caller(
    request: Request, parts: HasParts, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_public)]
) -> Identity:
    return await identify(request, parts)


Caller = Annotated[Identity, Depends(caller)]


async def _identify(request: Request, parts: Parts) -> Identity:
    headers = None if parts.people is None else parts.people.headers
    credentials = await _public(request)
    if credentials is not None:
        identity = await _by_token(credentials.credentials, parts)
    else:
        found = None if headers is None else await headers.identify(request)
        if found is None:
            raise AuthenticationRequired("Say who you are: Authorization: Bearer <token>.")
        identity = found
    return identity if headers is None else headers.lowered(request, identity)


async def _by_token(token: str, parts: Parts) -> Identity:
    for authenticator in parts.authenticators:
        if identity := await authenticator.identify(token):
            return identity
    raise InvalidToken("This token is not known, or not any more.")


async def service(
    request: Request,
    parts: HasParts,
    _: Annotated[HTTPAuthorizationCredentials | None, Depends(_internal)],
    x_component: Annotated[str, Header(description="worker or wrapper", examples=["worker"])] = "",  # noqa: ARG001 - for the description
) -> ServiceCaller:
    return await service_of(request, parts)


async def service_of(request: Request, parts: Parts) -> ServiceCaller:
    """Found out once a request, however many ask."""
    state = request.scope["state"]
    if "service" not in state:
        state["service"] = await _service(request, parts)
    caller: ServiceCaller = state["service"]
    return caller


async def _service(request: Request, parts: Parts) -> ServiceCaller:
    if not parts.services:
        raise AuthenticationRequired("This control plane has no internal API.", hint="Set PENSTOCK_SERVICE_TOKEN.")
    credentials = await _internal(request)
    if credentials is None:
        raise AuthenticationRequired("The internal API needs a service token: Authorization: Bearer <token>.")
    caller = await process_of(credentials.credentials, parts)
    component = request.headers.get("x-component", "")
    if component not in ("worker", "wrapper"):
        raise InvalidComponent("X-Component must be worker or wrapper.")
    if component != caller.component:
        raise PermissionDenied(f"This token is a {caller.component}'s.")
    return caller


Service = Annotated[ServiceCaller, Depends(service)]


async def process_of(token: str, parts: Parts) -> ServiceCaller:
    """Which process of ours shows this token."""
    for tokens in parts.services:
        if found := await tokens.who(token):
            return found
    raise InvalidToken("This is not a service token.")
