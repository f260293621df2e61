"""HTTP clients of the control plane for graph servers: one per run, with that server's token.

Proxied requests always name their user in `X-Penstock-User`; a call without it is the control
plane's own. A server accepts neither without its token.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2

from penstock.graphs.errors import ShutdownBlocked
from penstock.kit.http1 import Connections, Origin
from penstock.launchers.errors import NoAddress

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphs.instances.model import Instance
    from penstock.launchers.contract import Handle, Launcher

MAX_CLIENTS = 256
MAX_CONNECTIONS = 200
CONNECT_SECONDS = 5.0
SHUTDOWN_SECONDS = 5.0


class GraphServers:
    def __init__(self, launcher: Launcher, token_of: Callable[[int], str]) -> None:
        self._launcher = launcher
        self._token_of = token_of
        self._clients: OrderedDict[Handle, httpx2.AsyncClient] = OrderedDict()
        self._evicted: list[httpx2.AsyncClient] = []
        self._connections: OrderedDict[Handle, Connections] = OrderedDict()

    async def __aenter__(self) -> GraphServers:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in (*self._clients.values(), *self._evicted):
            await client.aclose()
        for connections in self._connections.values():
            connections.close()

    def authorization(self, instance_id: int) -> str:
        return f"Bearer {self._token_of(instance_id)}"

    def client(self, handle: Handle) -> httpx2.AsyncClient:
        """A client without a read timeout: queries have their own."""
        if handle in self._clients:
            self._clients.move_to_end(handle)
            return self._clients[handle]
        address = self._launcher.address(handle)
        transport = httpx2.AsyncHTTPTransport(
            uds=address.socket,
            trust_env=False,
            limits=httpx2.Limits(max_connections=200, max_keepalive_connections=20),
        )
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        client = self._clients[handle] = httpx2.AsyncClient(
            base_url=address.url,
            transport=transport,
            timeout=timeout,
            trust_env=False,
            follow_redirects=False,
        )
        if len(self._clients) > MAX_CLIENTS:
            self._evicted.append(self._clients.popitem(last=False)[1])
        return client

    def connections(self, handle: Handle) -> Connections:
        """Connections for proxied requests, without a read timeout: queries have their own."""
        if handle not in self._connections:
            address = self._launcher.address(handle)
            url = urlsplit(address.url)
            self._connections[handle] = Connections(
                Origin(socket=address.socket, host=url.hostname or "", port=url.port or 80),
                limit=MAX_CONNECTIONS,
                connect_seconds=CONNECT_SECONDS,
            )
        self._connections.move_to_end(handle)
        if len(self._connections) > MAX_CLIENTS:
            self._connections.popitem(last=False)[1].retire()
        return self._connections[handle]

    async def forget(self, handle: Handle) -> None:
        """Close all connections to a run that has ended."""
        if connections := self._connections.pop(handle, None):
            connections.close()
        if client := self._clients.pop(handle, None):
            await client.aclose()
        while self._evicted:
            await self._evicted.pop().aclose()

    async def shutdown(self, instance: Instance, *, reason: str, grace: float) -> None:
        """Ask a server to shut down; ShutdownBlocked while an algorithm runs. A server that does
        not answer is ignored: the launcher ends it."""
        headers = {"Authorization": self.authorization(instance.instance_id)}
        body = {"reason": reason, "grace_period_seconds": grace}
        with suppress(httpx2.TransportError, NoAddress):
            answer = await self.client(instance.handle).post(
                "/shutdown", json=body, headers=headers, timeout=SHUTDOWN_SECONDS
            )
            if answer.status_code == ShutdownBlocked.status:
                raise ShutdownBlocked(
                    f"An algorithm is running on instance {instance.instance_id}.",
                    hint="Wait for it, cancel it, or use `force` to end it with the instance.",
                    **_details(answer),
                )


def _details(answer: httpx2.Response) -> dict[str, object]:
    try:
        details = answer.json()["error"]["details"]
    except (ValueError, KeyError, TypeError):
        return {}
    return (
        {str(name): value for name, value in details.items() if name != "hint"}
        if isinstance(details, dict)
        else {}
    )
