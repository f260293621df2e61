"""Service tokens: how workers and graph servers authenticate to the internal API."""

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
    """Of a wrapper: the only instance that it may report on."""


class ServiceTokens(Protocol):
    """One kind of service token."""

    async def who(self, token: str) -> ServiceCaller | None:
        """Whose token this is; None when it is not of this kind, or not valid."""
        ...


class StaticToken:
    """The token from the settings, shared by all workers."""

    def __init__(self, token: SecretStr) -> None:
        self._token = token

    async def who(self, token: str) -> ServiceCaller | None:
        return ServiceCaller(component="worker") if same(token, self._token) else None


def same(shown: str, expected: SecretStr) -> bool:
    """Constant-time comparison; an empty secret matches nothing."""
    secret = expected.get_secret_value()
    return bool(secret) and hmac.compare_digest(shown.encode(), secret.encode())
