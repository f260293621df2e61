"""The processes of the deployment: what shows that somebody is a worker, or the graph server of one
instance."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from pydantic import SecretStr

Component = Literal["worker", "wrapper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCaller:
    component: Component
    instance_id: int | None = None
    """Of a wrapper: the one instance that it may speak of."""


class ServiceTokens(Protocol):
    """One kind of service token."""

    async def who(self, token: str) -> ServiceCaller | None:
        """Whose token this is; None when it is not of this kind, or not valid."""
        ...


class StaticToken:
    """The one token of the settings, which all workers share."""

    def __init__(self, token: SecretStr) -> None:
        self._token = token

    async def who(self, token: str) -> ServiceCaller | None:
        return ServiceCaller(component="worker") if same(token, self._token) else None


def same(shown: str, expected: SecretStr) -> bool:
    """Compared in a time that does not tell how much of it was right; an empty secret opens
    nothing."""
    secret = expected.get_secret_value()
    return bool(secret) and hmac.compare_digest(shown.encode(), secret.encode())
