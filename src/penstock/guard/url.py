"""Validates outbound URLs (callbacks, sources, identity providers) against SSRF.

    pinned = resolve_public("https://hooks.example/run")
    connect to one of pinned.addresses, send pinned.host as Host and server name

A name is resolved once and all its addresses must be public; the caller connects to these addresses
without resolving again, which prevents DNS rebinding. A redirect is another URL and must be checked
as well. Hosts in a form that libraries interpret differently (octal, hexadecimal, short forms,
percent signs, other scripts) are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.guard.errors import UrlRefused
from penstock.kit.outbound import PUBLIC_ONLY, Address, Network, OutboundPolicy, Resolver, resolve

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

PORTS = (80, 443, 8080, 8443)
_MAX_LENGTH = 2048
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC_LABEL = re.compile(r"\d+|0x[0-9a-f]*")
_LOCAL_NAMES = ("localhost", "local", "internal", "localdomain", "home.arpa")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A URL and the only addresses that may be connected to for it."""

    url: str
    scheme: str
    host: str
    port: int
    addresses: tuple[Address, ...]


def resolve_public(
    url: str,
    *,
    allow: Sequence[Network | str] = (),
    policy: OutboundPolicy = PUBLIC_ONLY,
    ports: Collection[int] | None = PORTS,
    resolver: Resolver = resolve,
) -> Pinned:
    """The URL with its addresses pinned; `allow` adds networks, `ports=None` allows any port."""
    scheme, host, port = _parts(url)
    if ports is not None and port not in ports:
        raise UrlRefused(
            f"Port {port} is not allowed.", hint=f"Use one of {', '.join(map(str, sorted(ports)))}."
        )
    if allow:
        policy = replace(policy, allow=(*policy.allow, *map(str, allow)))
    literal = _literal(host)
    local = policy.private or bool(policy.allow)
    addresses = (literal,) if literal else _resolved(host, port, resolver, local=local)
    for address in addresses:
        if not policy.permits(host, address):
            raise UrlRefused(
                f"{host} leads to {address}, which is not a public address.",
                hint="Only public addresses are allowed; an operator can allow a private network.",
            )
    return Pinned(url=url, scheme=scheme, host=host, port=port, addresses=addresses)


def _parts(url: str) -> tuple[str, str, int]:
    if len(url) > _MAX_LENGTH or not url.isascii() or re.search(r"[\x00-\x20\x7f\\]", url):
        raise UrlRefused(
            "The URL is too long or has a space, a backslash or a character that is not ASCII."
        )
    try:
        split = urlsplit(url)
        host, port = (split.hostname or "").removesuffix("."), split.port
    except ValueError:
        raise UrlRefused("The URL is invalid: its host or port is malformed.") from None
    if split.scheme not in _DEFAULT_PORTS or not url.lower().startswith(f"{split.scheme}://"):
        raise UrlRefused("The URL must begin with http:// or https://.")
    if (
        not host
        or set("@%") & set(split.netloc)
        or ("[" in split.netloc) != (":" in host)
        or port == 0
    ):
        raise UrlRefused("The URL must have a host, without a user, a password or percent signs.")
    return split.scheme, host, port or _DEFAULT_PORTS[split.scheme]


def _literal(host: str) -> Address | None:
    """The address if the host is a literal, None for a name; other numeric forms are refused."""
    if ":" in host or _NUMERIC_LABEL.fullmatch(host.rsplit(".", 1)[-1]):
        try:
            return ip_address(host)
        except (AddressValueError, ValueError):
            raise UrlRefused(f"{host[:80]!r} is not an address in its plain form.") from None
    return None


def _resolved(host: str, port: int, resolver: Resolver, *, local: bool) -> tuple[Address, ...]:
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise UrlRefused(
            f"{host[:80]!r} is not a host name.",
            hint="Write names of other scripts in punycode (xn--…).",
        )
    if not local and (
        len(labels) == 1 or any(host == name or host.endswith(f".{name}") for name in _LOCAL_NAMES)
    ):
        raise UrlRefused(f"{host} is a local network name.")
    try:
        addresses = tuple(dict.fromkeys(ip_address(text) for text in resolver(host, port)))
    except (OSError, ValueError):
        addresses = ()
    if not addresses:
        raise UrlRefused(f"{host} has no address.", hint="Check the host name.")
    return addresses
