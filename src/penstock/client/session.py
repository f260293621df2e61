"""A minimal synchronous HTTP session for the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.transport import Transport
from penstock.client.address import Address

if TYPE_CHECKING:
    from types import TracebackType


class Session:
    def __init__(self, url: str, token: str | None, *, timeout: float = 30.0) -> None:
        self._transport = Transport(Address(url=url.rstrip("/"), token=token), timeout=timeout)
        self.url: str = self._transport.url

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._transport.close()

    def call(self, method: str, path: str, *, json: Any = None, **params: Any) -> Any:
        """The decoded body of the answer; ClientError for anything but success."""
        return self._transport.call(method, path, json=json, query=params)

    def text(self, path: str) -> str:
        """A page that is not JSON, such as /metrics."""
        return self._transport.content("GET", path, path={}).decode()
