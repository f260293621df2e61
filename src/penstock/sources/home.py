"""Reject data sources that point at Penstock's own resources: its home folder, its database, its
address and its part of the object store. Reading those as data would expose secrets and the data
of other users.

Resources are compared by location, not by name: paths are resolved and host names looked up. What
that cannot detect (a forwarded port, a proxy) the PostgreSQL driver checks after connecting.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from penstock.kit.errors import InvalidInput
from penstock.sources.endpoints import destinations

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeAlias

    Addresses: TypeAlias = Callable[[str], frozenset[str]]

DATA_FOLDERS = ("lake", "warehouse")
"""Folders of the home that hold user data: the local lake and the demo's warehouse."""
_SCHEMES = {"https": 443, "http": 80}
_POSTGRES_PORT = 5432


class OwnHome(InvalidInput):
    """The data source points at one of Penstock's own resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """`name` is None if the whole server is Penstock's; `host` is a name or a socket folder."""

    host: str
    port: int
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    scheme: str
    name: str
    prefix: str
    endpoint: str | None


def addresses(host: str) -> frozenset[str]:
    """All addresses of a host; empty if it cannot be resolved, and so not connected to either."""
    try:
        infos = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return frozenset()
    return frozenset(str(info[4][0]) for info in infos)


class HomeGuard:
    """Checks a configuration; raises `OwnHome`. Blocking, because it resolves host names."""

    def __init__(
        self,
        *,
        home: Path,
        storage_url: str,
        storage_endpoint: str | None = None,
        dsn: str | None = None,
        address: tuple[str, int] | None = None,
        lookup: Addresses = addresses,
    ) -> None:
        """`dsn` is that of Penstock's database, `address` what the control plane listens on."""
        self._home = home
        self._storage = urlsplit(storage_url)
        self._bucket = _bucket(storage_url, storage_endpoint)
        self._dsn = dsn
        self._address = address
        self._lookup = lookup

    def __call__(self, kind: str, config: Mapping[str, object]) -> None:
        for setting, url in destinations(kind, config):
            self._check_url(kind, config, setting, url)
        self._check_bucket(config)

    def _check_url(self, kind: str, config: Mapping[str, object], setting: str, url: str) -> None:
        if url.startswith("file:"):
            self._check_path(Path(unquote(url.removeprefix("file:"))), setting)
            self._check_path(Path(url.removeprefix("file:")), setting)
        elif url.startswith("unix:"):
            self._check_socket(Path(url.removeprefix("unix:")), config, setting)
        else:
            self._check_host(kind, config, setting, url)

    def _check_path(self, path: Path, setting: str) -> None:
        if "\0" in str(path):
            return  # not a path; the driver rejects it
        where = _resolved(path)
        for folder in self._folders():
            if folder.is_relative_to(where):
                raise _own(setting, f"it holds {folder.name}, a folder of Penstock's own")
            if where.is_relative_to(folder) and not self._is_data(where):
                raise _own(setting, "it is in a folder of Penstock's own")

    def _is_data(self, where: Path) -> bool:
        home = _resolved(self._home)
        return any(where.is_relative_to(home / name) for name in DATA_FOLDERS)

    def _folders(self) -> list[Path]:
        """The home, the targets of its links (as root the embedded database is elsewhere), and the
        storage."""
        folders = [_resolved(self._home)]
        if self._home.is_dir():
            folders += [_resolved(child) for child in self._home.iterdir() if child.is_symlink()]
        if self._storage.scheme == "file":
            folders.append(_resolved(Path(unquote(self._storage.path))))
        return folders

    def _check_socket(self, path: Path, config: Mapping[str, object], setting: str) -> None:
        if "\0" in str(path):
            return
        where = _resolved(path)
        if any(where.is_relative_to(folder) for folder in self._folders()):
            raise _own(setting, "it is a socket in a folder of Penstock's own")
        own = self._database()
        if own is None or not own.host.startswith("/"):
            return
        if where in (_resolved(Path(own.host)), _resolved(Path(own.host)) / f".s.PGSQL.{own.port}"):
            self._check_database(own, config, setting)

    def _check_host(self, kind: str, config: Mapping[str, object], setting: str, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return  # the driver and the outbound check report what is wrong with it
        own = self._database()
        if kind == "postgres" and own is not None and not own.host.startswith("/"):
            same_port = _port(config) == own.port
            if same_port and self._is_same_host(host, own.host):
                self._check_database(own, config, setting)
        if self._address is not None:
            ours, listens = self._address
            if (port or _SCHEMES.get(parts.scheme)) == listens and self._is_same_host(host, ours):
                raise _own(setting, "it is the control plane's own address")

    def _check_database(self, own: Database, config: Mapping[str, object], setting: str) -> None:
        if own.name is None or config.get("database") == own.name:
            raise _own(setting, "it is Penstock's own database")

    def _check_bucket(self, config: Mapping[str, object]) -> None:
        own, url = self._bucket, config.get("url")
        endpoint = config.get("endpoint")
        if own is None or not isinstance(url, str):
            return
        theirs = _bucket(url, endpoint if isinstance(endpoint, str) else None)
        if theirs is None or theirs.scheme != own.scheme:
            return
        if _host_of(theirs.endpoint).startswith(f"{own.name}."):
            raise _own("config.endpoint", "it is the bucket that Penstock stores its results in")
        overlaps = theirs.prefix.startswith(own.prefix) or own.prefix.startswith(theirs.prefix)
        if theirs.name == own.name and overlaps and self._is_same_store(theirs, own):
            raise _own("url", "Penstock stores its own results there")

    def _is_same_store(self, theirs: Bucket, own: Bucket) -> bool:
        """Whether both are at the same endpoint; None stands for the vendor's."""
        if theirs.endpoint is None or own.endpoint is None:
            return theirs.endpoint == own.endpoint
        return self._is_same_host(_host_of(theirs.endpoint), _host_of(own.endpoint))

    def _is_same_host(self, host: str, ours: str) -> bool:
        if host.lower().rstrip(".") == ours.lower().rstrip("."):
            return True
        theirs = self._lookup(host)
        own = self._lookup(ours)
        if own & _ANY or own & _LOOPBACK:
            own |= _LOOPBACK | self._lookup(socket.gethostname())
        return bool(theirs & (own | (_ANY if own & _LOOPBACK else frozenset())))

    def _database(self) -> Database | None:
        return None if self._dsn is None else database_of(self._dsn, self._folders())


_ANY = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound
_LOOPBACK = frozenset({"127.0.0.1", "::1"})


def database_of(dsn: str, folders: Collection[Path]) -> Database:
    """The database of a DSN; a server with its socket in one of our folders is entirely ours."""
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    host = (query.get("host") or [unquote(parts.hostname or "localhost")])[0]
    port = int(query["port"][0]) if "port" in query else parts.port or _POSTGRES_PORT
    name = (query.get("dbname") or [unquote(parts.path.strip("/"))])[0]
    where = _resolved(Path(host))
    is_ours = where.name.startswith("penstock-") or any(
        where.is_relative_to(folder) for folder in folders
    )
    embedded = host.startswith("/") and is_ours
    return Database(host=host, port=port, name=None if embedded else name)


def _bucket(url: str, endpoint: str | None) -> Bucket | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in ("s3", "gs"):
        return None
    prefix = unquote(parts.path).strip("/")
    return Bucket(
        scheme=parts.scheme,
        name=parts.netloc,
        prefix=f"{prefix}/" if prefix else "",
        endpoint=endpoint or None,
    )


def _host_of(endpoint: str | None) -> str:
    try:
        return "" if endpoint is None else urlsplit(endpoint).hostname or ""
    except ValueError:
        return ""


def _port(config: Mapping[str, object]) -> int:
    port = config.get("port")
    return port if isinstance(port, int) else _POSTGRES_PORT


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _own(setting: str, why: str) -> OwnHome:
    return OwnHome(
        f"config.{setting.removeprefix('config.')}: this cannot be a data source: {why}.",
        hint="Use a location that contains only the data to read.",
        field=f"config.{setting.removeprefix('config.')}",
    )
