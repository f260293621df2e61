"""An endpoint's signature is its policy: `caller: Operator` lets in whoever may operate, and nobody else.

Nobody is let in by default. A public route names the least role it needs; a route of the internal API names the
component it serves. Without a service token in the settings the internal API answers 401 to everybody.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from fastapi import Depends, Header
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from penstock.api.identity import Identity, Role, same
from penstock.api.parts import HasParts
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


def require(role: Role) -> Callable[[Identity], Awaitable[Identity]]:
    """A dependency that lets in whoever has at least this role."""

    async def allowed(identity: Caller) -> Identity:
        if identity.role < role:
            raise PermissionDenied(f"This needs the role {role.name.lower()}; you have {identity.role.name.lower()}.")
        return identity

    return allowed


Reader = Annotated[Identity, Depends(require(Role.ADMIN))]
"""May look at everybody's jobs, payloads included."""
Operator = Annotated[Identity, Depends(require(Role.OPS))]


async def service(
    parts: HasParts,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_internal)],
    x_component: Annotated[str, Header(description="worker or wrapper", examples=["worker"])] = "",
) -> Component:
    if parts.service_token is None:
        raise AuthenticationRequired("This control plane has no internal API.", hint="Set PENSTOCK_SERVICE_TOKEN.")
    if credentials is None:
        raise AuthenticationRequired("The internal API needs the service token: Authorization: Bearer <token>.")
    if not same(credentials.credentials, parts.service_token):
        raise InvalidToken("This is not the service token.")
    match x_component:
        case "worker" | "wrapper":
            return x_component
        case _:
            raise InvalidComponent("X-Component must be worker or wrapper.")


Service = Annotated[Component, Depends(service)]


async def worker(component: Service) -> None:
    if component != "worker":
        raise PermissionDenied(f"Jobs are for workers; a {component} reaches only its own instance.")


OnlyWorkers = Depends(worker)
