"""The IP address of a caller: the peer's, or the one that a trusted proxy reports."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Scope

    from penstock.kit.config import Network

Address: TypeAlias = IPv4Address | IPv6Address


def peer_address(scope: Scope) -> Address | None:
    """The address of the connection's peer; None on a Unix socket."""
    client = scope.get("client")
    return None if client is None else parse(client[0])


def client_address(scope: Scope, proxies: Sequence[Network]) -> Address | None:
    """The last address in X-Forwarded-For that is not a trusted proxy, if a trusted proxy sent the
    request; else the peer's.

    Earlier entries were written by untrusted callers and may be forged.
    """
    address = peer_address(scope)
    entries = _forwarded_for(scope) if is_in(proxies, address) else []
    while entries and is_in(proxies, address):
        named = parse(entries.pop())
        if named is None:
            break
        address = named
    return address


def is_in(networks: Sequence[Network], address: Address | None) -> bool:
    return address is not None and any(address in network for network in networks)


def parse(text: str) -> Address | None:
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _forwarded_for(scope: Scope) -> list[str]:
    values = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return b",".join(values).decode("latin-1").split(",") if values else []
