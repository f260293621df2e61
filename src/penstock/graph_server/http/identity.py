"""The caller of a request: headers set by the control plane, trusted only with this instance's
token."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from penstock.kit.errors import AuthenticationRequired, InvalidToken, PermissionDenied

if TYPE_CHECKING:
    from pydantic import SecretStr


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`username` is empty when the control plane itself asks."""

    username: str
    role: str
    may_write: bool

    def must_write(self) -> None:
        if not self.may_write:
            raise PermissionDenied("Only the owner of the instance, an admin or ops may do this.")

    def must_be_plane(self) -> None:
        if self.username:
            raise PermissionDenied("This is between the control plane and the graph server.")


async def trusted(request: Request) -> Caller:
    """Not a plain function, which the framework would send through a thread each time."""
    sent = request.headers.getlist("authorization")
    if len(sent) > 1:
        raise InvalidToken("The header Authorization was sent more than once.")
    scheme, _, shown = "".join(sent).partition(" ")
    if scheme.lower() != "bearer" or not shown:
        raise AuthenticationRequired("A graph server is reached through its control plane.")
    token: SecretStr = request.app.state.token
    if not hmac.compare_digest(shown.encode(), token.get_secret_value().encode()):
        raise InvalidToken("This is not the token of this instance.")
    user = request.headers.get("x-penstock-user", "")
    return Caller(
        username=user,
        role=request.headers.get("x-penstock-role", "analyst" if user else "ops"),
        may_write=not user or request.headers.get("x-penstock-write") == "1",
    )


Trusted = Annotated[Caller, Depends(trusted)]
