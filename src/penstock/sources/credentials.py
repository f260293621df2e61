"""The credentials of a source: type, configuration and secrets, which stay in memory.

Drivers must not leak credentials. As a second line of defense, every error that leaves `opened` is
redacted: secrets that a driver, its library or the server repeats are removed.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from penstock.kit.errors import PenstockError
from penstock.kit.logging import redact
from penstock.kit.outbound import PUBLIC_ONLY, OutboundPolicy
from penstock.sources.registry import DRIVERS, open_source
from penstock.sources.roles import require_role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.sources.contract import Source

_REDACTED = "[redacted]"
_SHORTEST_SECRET = 4
"""A shorter secret is part of too many words: redacting it would reveal it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCredentials:
    type: str
    config: Mapping[str, object]
    secrets: Mapping[str, str]
    outbound: OutboundPolicy = PUBLIC_ONLY

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> SourceCredentials:
        """Parse what the control plane sends to the attempt that runs a job."""
        return cls(
            type=document["type"],
            config=document["config"],
            secrets=document["secrets"],
            outbound=OutboundPolicy.from_wire(document["outbound"]),
        )

    def __repr__(self) -> str:
        return f"SourceCredentials(type={self.type!r})"

    def for_job(self, *, role: str | None = None, catalog: str | None = None) -> SourceCredentials:
        """The credentials for one job: its role and catalog come before those of the source.

        A source whose queries need a role has no default: without any, it raises `InvalidInput`.
        """
        driver = DRIVERS.get(self.type)
        if driver is None or not driver.roles:
            return self
        own = self.config.get("starburst_role")
        chosen = {"starburst_role": require_role(role or (own if isinstance(own, str) else None))}
        if catalog:
            chosen["catalog"] = catalog
        return replace(self, config={**self.config, **chosen})

    def source(self) -> Source:
        """The source, not yet connected. May import its driver, so call it in a thread."""
        return open_source(self.type, self.config, self.secrets, outbound=self.outbound)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Source]:
        try:
            async with await asyncio.to_thread(self.source) as source:
                yield source
        except Exception as e:
            self._redact_secrets(e)
            raise

    def _redact_secrets(self, error: Exception) -> None:
        error.args = self._redacted(error.args)
        error.__cause__, error.__suppress_context__ = None, True
        if isinstance(error, PenstockError):
            error.message, error.hint = self._redacted(error.message), self._redacted(error.hint)
            error.details = self._redacted(error.details)

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self.secrets.values():
                if len(secret) >= _SHORTEST_SECRET:
                    value = value.replace(secret, _REDACTED).replace(
                        quote(secret, safe=""), _REDACTED
                    )
            return redact(value)
        if isinstance(value, dict):
            return {name: self._redacted(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._redacted(item) for item in value)
        return value
