"""Who calls. What they may do is in the matrix.

Nobody is let in by default: no credential is 401, and without a service token in the settings the internal API answers
401 to everybody.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Header
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from penstock.api.identity import Identity, same
from penstock.api.parts import HasParts, Parts
from penstock.kit.errors import AuthenticationRequired, InvalidComponent, InvalidToken, PermissionDenied

Component = Literal["worker", "wrapper"]

_public = HTTPBearer(scheme_name="token", description="An operator's token.", auto_error=False)
_internal = HTTPBearer(scheme_name="service", description="The service token of the deployment.", auto_error=False)


async def caller(
    parts: HasParts, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_public)]
) -> Identity:
    if credentials is None:
        raise AuthenticationRequired("Say who you are: Authorization: Bearer <token>.")
    for authenticator in parts.authenticators:
        if identity := await authenticator.identify(credentials.credentials):
            return identity
    raise InvalidToken("This token is not known, or not any more.")


Caller = Annotated[Identity, Depends(caller)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCaller:
    """A process of ours."""

    component: Component
    instance_id: int | None = None
    """Of a wrapper: the one instance that it may speak of."""


async def service(
    parts: HasParts,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_internal)],
    x_component: Annotated[str, Header(description="worker or wrapper", examples=["worker"])] = "",
) -> ServiceCaller:
    if parts.service_token is None:
        raise AuthenticationRequired("This control plane has no internal API.", hint="Set PENSTOCK_SERVICE_TOKEN.")
    if credentials is None:
        raise AuthenticationRequired("The internal API needs a service token: Authorization: Bearer <token>.")
    found = _service(parts, credentials.credentials)
    if found is None:
        raise InvalidToken("This is not a service token.")
    if x_component not in ("worker", "wrapper"):
        raise InvalidComponent("X-Component must be worker or wrapper.")
    if x_component != found.component:
        raise PermissionDenied(f"This token is a {found.component}'s.")
    return found


Service = Annotated[ServiceCaller, Depends(service)]


def _service(parts: Parts, token: str) -> ServiceCaller | None:
    if parts.service_token is not None and same(token, parts.service_token):
        return ServiceCaller(component="worker")
    if parts.instance_tokens is not None and (instance_id := parts.instance_tokens.instance_of(token)):
        return ServiceCaller(component="wrapper", instance_id=instance_id)
    return None
