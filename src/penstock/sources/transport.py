"""Compare the transport security of source configurations, so stored credentials are never sent
over a weaker connection."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.kit.config import is_loopback
from penstock.sources.endpoints import HOSTS, URLS

if TYPE_CHECKING:
    from collections.abc import Mapping

MODES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "mysql": ("tls", ("disable", "prefer", "require", "verify")),
    "postgres": ("sslmode", ("disable", "prefer", "require", "verify-ca", "verify-full")),
}
"""By source type: the TLS setting, and its values from the weakest to the strongest."""
LEAST_MODE = "require"
"""With a weaker mode the server, or a man in the middle, can disable TLS."""
DEFAULT_MODE = "prefer"
CERTIFICATES = ("ca_file", "sslrootcert", "tls_ca")
"""Settings that select the trusted certificates."""
PERMISSIONS = ("allow_http",)


def is_weaker(kind: str, now: Mapping[str, object], before: Mapping[str, object]) -> bool:
    """Whether the connection is protected less than before, or trusts other certificates."""
    if _mode(kind, now) < _mode(kind, before):
        return True
    if any(now.get(name) and not before.get(name) for name in PERMISSIONS):
        return True
    return any(now.get(name) != before.get(name) for name in CERTIFICATES)


def is_unencrypted(kind: str, config: Mapping[str, object]) -> bool:
    """Whether credentials may be sent to another machine without TLS."""
    if kind in MODES:
        _, modes = MODES[kind]
        hosts = [str(config[name]) for name in HOSTS if config.get(name)]
        is_here = all(host[:1] in ("/", "@") or is_loopback(host) for host in hosts)
        return not is_here and _mode(kind, config) < modes.index(LEAST_MODE)
    if any(config.get(name) for name in PERMISSIONS):
        return True
    return any(_is_plain(str(config[name])) for name in URLS if config.get(name))


def _is_plain(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def _mode(kind: str, config: Mapping[str, object]) -> int:
    if kind not in MODES:
        return 0
    name, modes = MODES[kind]
    mode = config.get(name, DEFAULT_MODE)
    return modes.index(mode) if isinstance(mode, str) and mode in modes else 0
