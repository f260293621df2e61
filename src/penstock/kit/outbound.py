"""Which addresses a connection may be opened to, decided on the address that is connected to.

    outbound = Outbound(OutboundPolicy(private=False, allow=("10.1.0.0/16", ".minio.example")))
    for address in outbound.addresses("trino.example", 8443):
        ...  # connect to the address; the name serves for TLS and Host

A name is resolved once, every address it has must be allowed, and the caller connects to these
addresses without asking a resolver again: a second answer (DNS rebinding) cannot lead elsewhere.
What counts is the address, so another spelling of a host (decimal, octal, short forms, a trailing
dot) gains nothing.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self

from penstock.kit.errors import InvalidInput

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolver = Callable[[str, int], Iterable[str]]

DEFAULT_ANSWER_BYTES = 256 * 1024 * 1024
_ALLOWED_NAME = re.compile(r"\.?(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
_PRIVATE = tuple(
    ip_network(text)
    for text in ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
# Link-local addresses are in no list and so are reserved; these metadata services lie elsewhere.
_METADATA = tuple(
    ip_network(text)
    for text in ("100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128", "fd20:ce::254/128")
)
_NOT_PUBLIC_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
        "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
# Of IPv6 only global unicast is public, without its documentation, protocol and IPv4-carrying
# tunnel blocks. IPv4-mapped and NAT64 addresses are outside it.
_PUBLIC_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)


class OutboundRefused(InvalidInput):
    """The connection would lead to an address that the operator does not allow."""

    code = "OUTBOUND_REFUSED"


class Zone(IntEnum):
    """How far inside a network an address lies."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    RESERVED = 3
    """Link-local, metadata services, multicast, unspecified, IPv4 inside IPv6."""


def zone_of(address: Address) -> Zone:
    if any(address in network for network in _METADATA):
        return Zone.RESERVED
    if _is_public(address):
        return Zone.PUBLIC
    if any(address in network for network in _PRIVATE):
        return Zone.PRIVATE
    return Zone.LOOPBACK if any(address in network for network in _LOOPBACK) else Zone.RESERVED


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    return address in _PUBLIC_V6 and not any(address in network for network in _NOT_PUBLIC_V6)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundPolicy:
    """`private` opens private networks and this machine; `allow` lists networks and host names.

    A name in `allow` (`.example.com` for all below it) may lead to any address but a reserved one,
    a network in it also to those.
    """

    private: bool = False
    allow: tuple[str, ...] = ()
    answer_bytes: int = DEFAULT_ANSWER_BYTES
    """Largest body that is read from one answer."""
    _networks: tuple[Network, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        networks = tuple(n for entry in self.allow if (n := _network(entry)) is not None)
        object.__setattr__(self, "_networks", networks)

    @classmethod
    def from_wire(cls, rules: Mapping[str, object]) -> Self:
        """What `to_wire` gave, on the side of the worker."""
        allow, answer_bytes = rules["allow"], rules["answer_bytes"]
        if not isinstance(allow, list) or not isinstance(answer_bytes, int):
            raise TypeError("not an outbound policy")
        return cls(
            private=rules["private"] is True,
            allow=tuple(map(str, allow)),
            answer_bytes=answer_bytes,
        )

    def to_wire(self) -> dict[str, object]:
        return {
            "private": self.private,
            "allow": list(self.allow),
            "answer_bytes": self.answer_bytes,
        }

    @property
    def deepest(self) -> Zone:
        return Zone.LOOPBACK if self.private else Zone.PUBLIC

    def allows_name(self, host: str) -> bool:
        host = host.lower().removesuffix(".")
        return any(
            host == entry or (entry.startswith(".") and host.endswith(entry))
            for entry in self.allow
        )

    def permits(self, host: str, address: Address, *, deepest: Zone | None = None) -> bool:
        """`deepest` narrows how far inside this one connection may lead."""
        if any(address in network for network in self._networks):
            return True
        zone = zone_of(address)
        limit = self.deepest if deepest is None else min(deepest, self.deepest)
        return zone <= limit or (zone < Zone.RESERVED and self.allows_name(host))


PUBLIC_ONLY = OutboundPolicy()
WITH_PRIVATE = OutboundPolicy(private=True)


def allow_list(text: str) -> tuple[str, ...]:
    """Networks, addresses and host names with commas between them."""
    entries = tuple(entry for part in text.split(",") if (entry := part.strip().lower()))
    for entry in entries:
        if _network(entry) is None and (
            not _ALLOWED_NAME.fullmatch(entry) or entry.rsplit(".", 1)[-1].isdigit()
        ):
            raise InvalidInput(
                f"{entry[:80]!r} is neither a network nor a host name.",
                hint="Write 10.1.0.0/16, 10.1.2.3, minio.example or .example for all names below"
                " it.",
            )
    return entries


def _network(entry: str) -> Network | None:
    try:
        return ip_network(entry)
    except ValueError:
        return None


def resolve(host: str, port: int) -> list[str]:
    """Every address the system's resolver knows; blocking."""
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Outbound:
    """Resolves the hosts of connections and refuses those the policy does not allow."""

    def __init__(
        self, policy: OutboundPolicy = PUBLIC_ONLY, *, resolver: Resolver = resolve
    ) -> None:
        self.policy = policy
        self._resolver = resolver

    def addresses(
        self, host: str, port: int, *, deepest: Zone | None = None
    ) -> tuple[Address, ...]:
        """The addresses to connect to, all of them allowed; `OSError` when there is none.
        Blocks.
        """
        try:
            resolved = dict.fromkeys(
                ip_address(text) for text in self._resolver(host.strip("[]"), port)
            )
        except UnicodeError:
            raise OutboundRefused(f"{host[:80]!r} is not a host name.") from None
        if not resolved:
            raise OSError(f"{host} has no address")
        for address in resolved:
            if not self.policy.permits(host, address, deepest=deepest):
                raise OutboundRefused(
                    f"{host[:200]} leads to {address}, to which no connection may be opened from"
                    f" here.",
                    hint="An operator can allow its network or name: PENSTOCK_OUTBOUND_ALLOW.",
                )
        return tuple(resolved)

    def check_local(self, path: str) -> None:
        """Refuse a Unix socket where private networks are closed."""
        if not self.policy.private:
            raise OutboundRefused(
                f"{path[:200]} is a socket of this machine.",
                hint="An operator can allow private sources: PENSTOCK_ALLOW_PRIVATE_SOURCES.",
            )


FOR_OPERATOR = Outbound(WITH_PRIVATE)
"""What an operator configured or calls from a terminal: anywhere but to reserved addresses."""
