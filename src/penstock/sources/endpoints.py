"""The network and file destinations of a configuration, for access checks.

A destination is a URL: `https://host:port` for a network address, whatever its protocol,
`unix:path` for a socket and `file:path` for local files. A bucket without an endpoint is the cloud
vendor's and has no destination.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

HOSTS = ("host", "hosts")
URLS = ("url", "urls", "endpoint", "rest_endpoint", "storage_endpoint")
SOCKETS = ("unix_socket",)
FOLDERS = ("database", "directory")
_ANY_PORT = 443
_KEYS = {
    "s3": ({"access_key_id", "secret_access_key"},),
    "gs": ({"service_account"}, {"bearer_token"}),
}


def destinations(kind: str, config: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Pairs of setting and destination; for an invalid configuration, those that can be read."""
    if kind == "duckdb":
        yield from (
            (name, f"file:{config[name]}") for name in FOLDERS if config.get(name) is not None
        )
        return
    if kind in ("mysql", "postgres") and not config.keys() & {*HOSTS, *SOCKETS}:
        yield "host", _on_network("localhost", config.get("port"))
    for name in SOCKETS:
        yield from ((name, f"unix:{path}") for path in _each(config.get(name)))
    for name in HOSTS:
        yield from ((name, _host(host, config.get("port"))) for host in _each(config.get(name)))
    for name in URLS:
        for url in _each(config.get(name)):
            if destination := _url(url):
                yield name, destination


def leans_on_server(kind: str, config: Mapping[str, object], secrets: Collection[str]) -> bool:
    """Whether it uses the server's own access: its files, its sockets, or its cloud identity."""
    if any(url.startswith(("file:", "unix:")) for _, url in destinations(kind, config)):
        return True
    if kind == "bigquery":
        return "service_account" not in secrets
    keys = _KEYS.get(_scheme(config.get("url")), ()) if kind == "files" else ()
    return bool(keys) and not any(names <= set(secrets) for names in keys)


def _scheme(url: object) -> str:
    return str(url).partition(":")[0].strip().lower()


def _each(value: object) -> Iterator[str]:
    """The values of a string, a list, or a comma-separated list as in libpq."""
    texts = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    for text in texts:
        yield from (part.strip() for part in str(text).split(","))


def _host(host: str, port: object) -> str:
    return f"unix:{host}" if not host or host[0] in "/@" else _on_network(host, port)


def _on_network(host: str, port: object) -> str:
    return f"https://{f'[{host}]' if ':' in host else host}:{port or _ANY_PORT}"


def _url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    match parts.scheme:
        case "s3" | "gs":
            return None
        case "http" | "https":
            return f"{parts.scheme}://{parts.netloc}"
        case "file":
            return f"file:{parts.path}"
        case _:
            return f"https://{parts.netloc or url}"
