"""A source in one word, as people type it: a URL, or the path of a file or folder.

    duckdb:/data/shop.duckdb
    postgresql://ann@db.example/shop?sslmode=require
    mysql://ann@db.example/shop
    trino://ann@trino.example:8443/lake/sales?role=analysts
    /data/orders.parquet   /data/folder   s3://bucket/orders

What stands after the `?` are settings of the driver. A password is taken from the environment or
asked for, never from the URL: that would be in the shell's history and in every list of processes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from penstock.kit.config import is_loopback
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLES = (
    "duckdb:/path/file.duckdb, postgresql://user@host/database, "
    "trino://user@host/catalog/schema?role=…, or a folder"
)
_DATABASES = {".db", ".duckdb"}
_PASSWORDS = {"postgres": "PGPASSWORD", "mysql": "MYSQL_PWD", "trino": "TRINO_PASSWORD"}
_AWS = {
    "access_key_id": "AWS_ACCESS_KEY_ID",
    "secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceUrl:
    kind: str
    config: Mapping[str, object]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def takes_password(self) -> bool:
        return self.kind in _PASSWORDS


def read(text: str) -> SourceUrl:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidInput(
            "The source's URL cannot be read: its host or port is malformed."
        ) from None
    if parts.password is not None:
        raise InvalidInput(
            "A password in a URL is seen by others.",
            hint="Set PENSTOCK_SOURCE_PASSWORD, or wait to be asked for it.",
        )
    match parts.scheme:
        case "duckdb":
            return _path(Path(unquote(parts.netloc + parts.path)), database=True)
        case "postgres" | "postgresql":
            return _server("postgres", parts, port)
        case "mysql":
            return _server("mysql", parts, port)
        case "trino" | "trino+http" | "trino+https":
            return _trino(parts, port)
        case "s3" | "gs":
            return _bucket(text, parts)
        case "file":
            return _path(Path(unquote(parts.path)))
        case "":
            return _path(Path(text))
        case other:
            raise InvalidInput(f"There is no source {other}:.", hint=f"Use {EXAMPLES}.")


def _path(path: Path, *, database: bool = False) -> SourceUrl:
    path = path.absolute()
    if not path.exists():
        raise InvalidInput(
            f"There is no file or folder {path}.",
            hint=(
                f"A source is {EXAMPLES}; those that a control plane has by name are not read "
                "from here."
            ),
        )
    if database or path.suffix in _DATABASES:
        return SourceUrl(
            kind="duckdb", config={"directory" if path.is_dir() else "database": str(path)}
        )
    if path.is_dir():
        return SourceUrl(kind="files", config={"url": path.as_uri()})
    return SourceUrl(
        kind="files", config={"url": path.parent.as_uri(), "tables": {_table(path.name): path.name}}
    )


def _server(kind: str, parts: SplitResult, port: int | None) -> SourceUrl:
    named = {
        "host": parts.hostname,
        "port": port,
        "user": _decoded(parts.username),
        "database": _decoded(parts.path[1:]),
    }
    config = {name: value for name, value in named.items() if value} | _settings(parts)
    if "user" not in config:
        config["user"] = os.environ.get("PGUSER") or os.environ.get("USER") or ""
    return SourceUrl(kind=kind, config=config, secrets=_password(kind))


def _trino(parts: SplitResult, port: int | None) -> SourceUrl:
    host = parts.hostname or "localhost"
    plain = parts.scheme == "trino+http" or (parts.scheme == "trino" and is_loopback(host))
    address = f"[{host}]" if ":" in host else host
    catalog, _, schema = unquote(parts.path).strip("/").partition("/")
    settings: dict[str, object] = {
        "url": f"{'http' if plain else 'https'}://{address}:{port or (8080 if plain else 443)}",
        "user": _decoded(parts.username) or os.environ.get("USER", ""),
        "catalog": catalog or None,
        "schema": schema or None,
    }
    values: dict[str, object] = {
        ("starburst_role" if k == "role" else k): v or None for k, v in _settings(parts).items()
    }
    return SourceUrl(kind="trino", config=settings | values, secrets=_password("trino"))


def _bucket(text: str, parts: SplitResult) -> SourceUrl:
    config: dict[str, object] = {"url": text.partition("?")[0]} | _settings(parts)
    secrets: dict[str, str] = {}
    if parts.scheme == "s3":
        if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
            config |= {"endpoint": endpoint, "allow_http": endpoint.startswith("http://")}
        if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
            config["region"] = region
        secrets = {
            name: os.environ[variable]
            for name, variable in _AWS.items()
            if os.environ.get(variable)
        }
    return SourceUrl(kind="files", config=config, secrets=secrets)


def _settings(parts: SplitResult) -> dict[str, object]:
    return dict(parse_qsl(parts.query, keep_blank_values=True))


def _password(kind: str) -> dict[str, str]:
    password = os.environ.get("PENSTOCK_SOURCE_PASSWORD") or os.environ.get(_PASSWORDS[kind])
    return {"password": password} if password else {}


def _decoded(text: str | None) -> str | None:
    return unquote(text) if text else None


def _table(name: str) -> str:
    return name.split(".")[0]
