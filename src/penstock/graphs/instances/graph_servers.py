"""How the control plane reaches the graph servers: one kept client a run, with that server's own
token.

What passes through the proxy names its user in `X-Penstock-User`, always; a call without one is the
control plane's own. A server believes either of nobody who does not have its token.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from penstock.graphs.errors import ShutdownBlocked
from penstock.kit.http1 import Connections, Origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphs.instances.model import Instance
    from penstock.launchers.contract import Handle, Launcher

MOST_CLIENTS = 256
MOST_CONNECTIONS = 200
CONNECT_SECONDS = 5.0
ASK_SECONDS = 5.0


class GraphServers:
    def __init__(self, launcher: Launcher, token_of: Callable[[int], str]) -> None:
        self._launcher = launcher
        self._token_of = token_of
        self._clients: OrderedDict[Handle, httpx2.AsyncClient] = OrderedDict()
        self._old: list[httpx2.AsyncClient] = []
        self._passing: OrderedDict[Handle, Connections] = OrderedDict()

    async def __aenter__(self) -> GraphServers:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in (*self._clients.values(), *self._old):
            await client.aclose()
        for connections in self._passing.values():
            connections.close()

    def authorization(self, instance_id: int) -> str:
        return f"Bearer {self._token_of(instance_id)}"

    def client(self, handle: Handle) -> httpx2.AsyncClient:
        """Without a limit on how long an answer takes: queries have their own."""
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
        made = self._clients[handle] = httpx2.AsyncClient(
            base_url=address.url,
            transport=transport,
            timeout=timeout,
            trust_env=False,
            follow_redirects=False,
        )
        if len(self._clients) > MOST_CLIENTS:
            self._old.append(self._clients.popitem(last=False)[1])
        return made

    def connections(self, handle: Handle) -> Connections:
        """For what is passed on; there is no limit on how long an answer takes, for queries have
        their own."""
        if handle not in self._passing:
            address = self._launcher.address(handle)
            url = urlsplit(address.url)
            self._passing[handle] = Connections(
                Origin(socket=address.socket, host=url.hostname or "", port=url.port or 80),
                limit=MOST_CONNECTIONS,
                connect_seconds=CONNECT_SECONDS,
            )
        self._passing.move_to_end(handle)
        if len(self._passing) > MOST_CLIENTS:
            self._passing.popitem(last=False)[1].retire()
        return self._passing[handle]

    async def forget(self, handle: Handle) -> None:
        """The run is over; whoever still reads from it is cut off."""
        if connections := self._passing.pop(handle, None):
            connections.close()
        if client := self._clients.pop(handle, None):
            await client.aclose()
        while self._old:
            await self._old.pop().aclose()

    async def shutdown(self, instance: Instance, *, reason: str, grace: float) -> None:
        """Ask a server to end; ShutdownBlocked while an algorithm runs. One that does not answer is
        not asked twice."""
        headers = {"Authorization": self.authorization(instance.instance_id)}
        body = {"reason": reason, "grace_period_seconds": grace}
        with suppress(httpx2.TransportError):
            answer = await self.client(instance.handle).post(
                "/shutdown", json=body, headers=headers, timeout=ASK_SECONDS
            )
            if answer.status_code == ShutdownBlocked.status:
                raise ShutdownBlocked(
                    f"An algorithm runs on instance {instance.instance_id}.",
                    hint="Wait for it or cancel it; `force` ends it with the instance.",
                    **_details(answer),
                )


def _details(answer: httpx2.Response) -> dict[str, Any]:
    try:
        found = answer.json()["error"]["details"]
    except (ValueError, KeyError, TypeError):
        return {}
    return (
        {str(name): value for name, value in found.items() if name != "hint"}
        if isinstance(found, dict)
        else {}
    )
