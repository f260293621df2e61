"""Names of services, for pods: NAME.NAMESPACE.svc has the addresses of the pods that are ready.

It stands where a cluster has CoreDNS and kube-proxy: there a service has an address of its own.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx2

if TYPE_CHECKING:
    from penstock.launchers.kubernetes.connection import Connection

_DOMAINS = (("svc",), ("svc", "cluster", "local"))
_A = 1
_NO_SUCH_NAME = 3
_TTL_SECONDS = 1
_FRESH_SECONDS = 1.0
_LARGEST = 512


class Resolver(threading.Thread):
    """Answers on port 53 of the address until the process ends."""

    def __init__(self, address: str, connection: Connection) -> None:
        super().__init__(daemon=True, name="resolver")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 53))
        self._api = httpx2.Client(base_url=connection.url, verify=connection.tls(), timeout=5)
        self._known: dict[tuple[str, str], tuple[float, list[str] | None]] = {}

    def run(self) -> None:
        while True:
            query, asker = self._socket.recvfrom(_LARGEST)
            try:
                answer = self._answer(query)
            except (ValueError, IndexError, struct.error):
                continue  # no question that we could read
            self._socket.sendto(answer, asker)

    def _answer(self, query: bytes) -> bytes:
        number, flags = struct.unpack_from("!HH", query)
        name, end = _name(query, 12)
        kind = struct.unpack_from("!H", query, end)[0]
        question = query[12 : end + 4]
        addresses = self._addresses(name)
        code = _NO_SUCH_NAME if addresses is None else 0
        records = [
            struct.pack("!HHHIH", 0xC00C, _A, 1, _TTL_SECONDS, 4)
            + ipaddress.IPv4Address(address).packed
            for address in (addresses or [] if kind == _A else [])
        ]
        # An answer, from the authority; recursion as it was asked for.
        head = struct.pack(
            "!HHHHHH", number, 0x8480 | (flags & 0x0100) | code, 1, len(records), 0, 0
        )
        return head + question + b"".join(records)

    def _addresses(self, labels: tuple[str, ...]) -> list[str] | None:
        """None: there is no such service."""
        if labels[2:] not in _DOMAINS:
            return None
        service, namespace = labels[:2]
        asked, addresses = self._known.get((namespace, service), (0.0, None))
        if time.monotonic() - asked > _FRESH_SECONDS:
            try:
                addresses = self._ask(namespace, service)
            except httpx2.HTTPError:
                return addresses  # the API server is away: what was true last
            self._known[namespace, service] = (time.monotonic(), addresses)
        return addresses

    def _ask(self, namespace: str, service: str) -> list[str] | None:
        answer = self._api.get(
            f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
            params={"labelSelector": f"kubernetes.io/service-name={service}"},
        )
        answer.raise_for_status()
        slices: list[dict[str, Any]] = answer.json()["items"]
        if not slices:
            return None
        return [
            address
            for one in slices
            for endpoint in one["endpoints"] or ()
            if endpoint["conditions"].get("ready")
            for address in endpoint["addresses"]
        ]


def _name(message: bytes, at: int) -> tuple[tuple[str, ...], int]:
    """The labels of a question, and where they end."""
    labels = []
    while length := message[at]:
        labels.append(message[at + 1 : at + 1 + length].decode("ascii").lower())
        at += 1 + length
    return tuple(labels), at + 1
