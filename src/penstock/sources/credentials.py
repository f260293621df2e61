"""What it takes to open a source: its type, its configuration, and its secrets, which stay in
memory.

Drivers leak no credential by contract. What leaves here is looked through once more in any case:
wherever a driver, its library or the server itself repeats one of the secrets, it is taken out of
the error.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from penstock.kit.errors import PenstockError
from penstock.kit.logging import redact
from penstock.kit.outbound import PUBLIC_ONLY, OutboundPolicy
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.sources.contract import Source

_HIDDEN = "[redacted]"
_LEAST = 4
"""A shorter secret is part of too many words: taking it out would tell it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCredentials:
    type: str
    config: Mapping[str, Any]
    secrets: Mapping[str, str]
    outbound: OutboundPolicy = PUBLIC_ONLY

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> SourceCredentials:
        """What the control plane sends to the attempt that holds a job."""
        return cls(
            type=document["type"],
            config=document["config"],
            secrets=document["secrets"],
            outbound=OutboundPolicy.from_wire(document["outbound"]),
        )

    def __repr__(self) -> str:
        return f"SourceCredentials(type={self.type!r})"

    def source(self) -> Source:
        """Not yet connected; it may import its driver, so call it in a thread."""
        return open_source(self.type, self.config, self.secrets, outbound=self.outbound)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Source]:
        try:
            async with await asyncio.to_thread(self.source) as source:
                yield source
        except Exception as e:
            self._hush(e)
            raise

    def _hush(self, error: Exception) -> None:
        error.args = self._without(error.args)
        error.__cause__, error.__suppress_context__ = None, True
        if isinstance(error, PenstockError):
            error.message, error.hint = self._without(error.message), self._without(error.hint)
            error.details = self._without(error.details)

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self.secrets.values():
                if len(secret) >= _LEAST:
                    value = value.replace(secret, _HIDDEN).replace(quote(secret, safe=""), _HIDDEN)
            return redact(value)
        if isinstance(value, dict):
            return {name: self._without(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._without(item) for item in value)
        return value
