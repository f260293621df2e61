"""HTTP over checked connections: `httpx2` clients that open no connection `Outbound` refuses.

The check sits where the TCP connection is opened, below redirects, pools and retries, and TLS and
Host keep the name that the URL has. Redirects are not followed and the environment's proxies are
not used.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import httpcore2
import httpx2

from penstock.kit.outbound import OutboundRefused, Zone, zone_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from httpcore2 import SOCKET_OPTION

    from penstock.kit.outbound import Address, Outbound

_USER_AGENT = "penstock"


class AnswerTooLarge(httpx2.TransportError):
    """The body of an answer is larger than is read."""


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    def __init__(self, outbound: Outbound, behind: CheckedTransport | None) -> None:
        self._outbound = outbound
        self._behind = behind
        self._inner = httpcore2.AnyIOBackend()
        self.shallowest: Zone | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await self._addresses(host, port, timeout)
        for address in addresses[:-1]:
            try:
                return await self._connect(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._connect(addresses[-1], port, timeout, local_address, socket_options)

    async def _addresses(self, host: str, port: int, timeout: float | None) -> tuple[Address, ...]:
        deepest = None if self._behind is None else self._behind.shallowest
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.to_thread(
                    self._outbound.addresses, host, port, deepest=deepest
                )
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} was not looked up in time") from None
        except OSError as e:
            raise httpcore2.ConnectError(str(e)) from None

    async def _connect(
        self,
        address: Address,
        port: int,
        timeout: float | None,
        local_address: str | None,
        socket_options: Iterable[SOCKET_OPTION] | None,
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self._inner.connect_tcp(
            str(address),
            port,
            timeout=timeout,
            local_address=local_address,
            socket_options=socket_options,
        )
        zone = zone_of(address)
        self.shallowest = zone if self.shallowest is None else min(zone, self.shallowest)
        return stream

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002 - the backend's signature
        socket_options: Iterable[SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        raise OutboundRefused(f"{path[:200]} is a socket of this machine.")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """With `behind`, connections lead no further inside than those of the transport whose answers
    named them: a server on the internet cannot send us to a private network, one on a private
    network not to this machine."""

    def __init__(
        self,
        outbound: Outbound,
        *,
        context: ssl.SSLContext | None = None,
        connections: int = 100,
        behind: CheckedTransport | None = None,
    ) -> None:
        context = context or ssl.create_default_context()
        super().__init__(verify=context, trust_env=False)
        self._backend = _CheckedBackend(outbound, behind)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=connections,
            max_keepalive_connections=max(1, connections // 4),
            keepalive_expiry=30.0,
            network_backend=self._backend,
        )

    @property
    def shallowest(self) -> Zone:
        """The least inside of all addresses that were connected to; public before the first."""
        zone = self._backend.shallowest
        return Zone.PUBLIC if zone is None else zone


class _CheckedSyncBackend(httpcore2.NetworkBackend):
    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        try:
            address = self._outbound.addresses(host, port)[0]
        except OSError as e:
            raise httpcore2.ConnectError(str(e)) from None
        return self._inner.connect_tcp(
            str(address),
            port,
            timeout=timeout,
            local_address=local_address,
            socket_options=socket_options,
        )

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002 - the backend's signature
        socket_options: Iterable[SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        raise OutboundRefused(f"{path[:200]} is a socket of this machine.")


class CheckedSyncTransport(httpx2.HTTPTransport):
    """The same for blocking callers."""

    def __init__(self, outbound: Outbound) -> None:
        context = ssl.create_default_context()
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=context, network_backend=_CheckedSyncBackend(outbound)
        )


def checked_client(
    outbound: Outbound | CheckedTransport,
    *,
    timeout: httpx2.Timeout | float,
    base_url: str = "",
    headers: Mapping[str, str] | None = None,
) -> httpx2.AsyncClient:
    transport = outbound if isinstance(outbound, CheckedTransport) else CheckedTransport(outbound)
    return httpx2.AsyncClient(
        base_url=base_url,
        headers={"User-Agent": _USER_AGENT, **(headers or {})},
        timeout=timeout,
        trust_env=False,
        follow_redirects=False,
        transport=transport,
    )


async def fetch(
    client: httpx2.AsyncClient, request: httpx2.Request, *, max_bytes: int, seconds: float
) -> httpx2.Response:
    """The answer with its whole body, as long as it is at most `max_bytes` and arrives in time."""
    try:
        async with asyncio.timeout(seconds):
            answer = await client.send(request, stream=True)
            try:
                body = await _body(answer, max_bytes)
            finally:
                await answer.aclose()
    except TimeoutError:
        raise httpx2.ReadTimeout(f"no whole answer within {seconds:g} s", request=request) from None
    headers = [
        (name, value)
        for name, value in answer.headers.multi_items()
        if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
    ]
    return httpx2.Response(answer.status_code, headers=headers, content=body, request=request)


async def _body(answer: httpx2.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > max_bytes:
            raise AnswerTooLarge(f"the answer has more than {max_bytes:,} bytes")
    return bytes(body)
