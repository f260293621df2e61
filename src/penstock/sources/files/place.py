"""The files below one URL: listed, opened, and known to be those that were listed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import obstore
from obstore.store import GCSStore, LocalStore, S3Store

from penstock.kit.errors import InvalidInput
from penstock.kit.outbound import Zone, zone_of
from penstock.sources.errors import SourceError, SourceRefused, SourceUnavailable
from penstock.sources.files.failure import reached

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from obstore.store import ClientConfig, GCSConfig, ObjectStore, RetryConfig, S3Config

    from penstock.kit.outbound import Outbound
    from penstock.sources.files.config import Config

_MOST_FILES = 100_000
_READ_AHEAD = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    path: str
    size: int
    etag: str | None


class Place:
    def __init__(self, config: Config, outbound: Outbound) -> None:
        self.url = config.url.rstrip("/")
        self._outbound = outbound
        self._endpoint = config.endpoint
        self._folder: Path | None = None
        parts = urlsplit(config.url)
        if "@" in parts.netloc or parts.query:
            raise InvalidInput(
                "files: url must carry no credentials.", hint="Give them as secrets."
            )
        match parts.scheme:
            case "file":
                self._folder = Path(unquote(parts.path)).resolve()
                self._store: ObjectStore = _local(self._folder)
            case "s3":
                self._store = _s3(parts.netloc, parts.path, config)
            case "gs":
                self._store = _gcs(parts.netloc, parts.path, config)
            case other:
                raise InvalidInput(
                    f"files: there is no way to read {other}://.",
                    hint="Use file://, s3:// or gs://.",
                )

    def entries(self) -> Sequence[Entry]:
        """Every file but hidden ones and markers, by path."""
        self._check_endpoint()
        found: list[Entry] = []
        with reached(self.url):
            for page in obstore.list(self._store, chunk_size=1000):
                found += [
                    Entry(path=meta["path"], size=meta["size"], etag=meta["e_tag"])
                    for meta in page
                    if _visible(meta["path"])
                ]
                if len(found) > _MOST_FILES:
                    raise SourceError(f"There are more than {_MOST_FILES} files below {self.url}.")
        return sorted(found, key=lambda entry: entry.path)

    def open(self, entry: Entry, stop: threading.Event) -> ObjectFile:
        self.check(entry)
        with reached(f"{self.url}/{entry.path}"):
            reader = obstore.open_reader(self._store, entry.path, buffer_size=_READ_AHEAD)
        return ObjectFile(reader, f"{self.url}/{entry.path}", stop)

    def _check_endpoint(self) -> None:
        """The store's library resolves names by itself, so this is asked before whatever it does.

        Over TLS a name that leads elsewhere by then meets a server without its certificate. Plain
        http has no such proof: it is for endpoints that an operator's policy lets be inside."""
        if self._endpoint is None:
            return
        parts = urlsplit(self._endpoint)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            addresses = self._outbound.addresses(parts.hostname or "", port)
        except OSError:
            raise SourceUnavailable(f"The address of {parts.hostname} is not known.") from None
        if parts.scheme != "https" and any(zone_of(a) is Zone.PUBLIC for a in addresses):
            raise SourceRefused(
                f"files: endpoint {parts.hostname} is on the internet and must speak https."
            )

    def path(self, entry: Entry) -> Path | None:
        """Where others can read it themselves; None for what is not in a folder."""
        if self._folder is None:
            return None
        self.check(entry)
        return (self._folder / entry.path).resolve()

    def check(self, entry: Entry) -> None:
        """That it lies within, also through links, and is still the one that was listed.

        To be asked again after the last byte, for a file may be replaced while it is read.
        """
        self._check_endpoint()
        place = f"{self.url}/{entry.path}"
        if self._folder and not (self._folder / entry.path).resolve().is_relative_to(self._folder):
            raise SourceRefused(f"{place} leads out of its folder.")
        with reached(place):
            now = obstore.head(self._store, entry.path)
        if (now["size"], now["e_tag"]) != (entry.size, entry.etag):
            raise SourceUnavailable(
                f"{place} has changed since it was listed.", hint="Read it again from the start."
            )


class ObjectFile:
    """What Arrow needs of a file; `stop` ends the next read."""

    def __init__(self, reader: obstore.ReadableFile, place: str, stop: threading.Event) -> None:
        self._reader = reader
        self._place = place
        self._stop = stop
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        if self._stop.is_set():
            raise SourceError("The read was cancelled.")
        with reached(self._place):
            return bytes(self._reader.read(None if size < 0 else size))

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._reader.seek(offset, whence)

    def tell(self) -> int:
        return self._reader.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True
        self._reader.close()


def matching(pattern: str, entries: Sequence[Entry]) -> list[Entry]:
    parts = re.split(r"(\*\*/?|\*|\?)", pattern.strip("/"))
    signs = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    wanted = re.compile("".join(signs.get(part) or re.escape(part) for part in parts))
    return [entry for entry in entries if wanted.fullmatch(entry.path)]


def _visible(path: str) -> bool:
    return not any(part.startswith((".", "_")) for part in path.split("/"))


def _local(folder: Path) -> LocalStore:
    if not folder.is_dir():
        raise SourceError(f"There is no folder {folder}.")
    return LocalStore(folder)


def _s3(bucket: str, path: str, config: Config) -> S3Store:
    settings: S3Config = {"region": config.region, "virtual_hosted_style_request": False}
    if config.endpoint:
        settings["endpoint"] = config.endpoint
    if config.access_key_id and config.secret_access_key:
        settings["access_key_id"] = config.access_key_id
        settings["secret_access_key"] = config.secret_access_key
    if config.session_token:
        settings["session_token"] = config.session_token
    return S3Store(
        bucket,
        prefix=path.strip("/") or None,
        config=settings,
        client_options=_client(config),
        retry_config=_retries(config),
    )


def _gcs(bucket: str, path: str, config: Config) -> GCSStore:
    settings: GCSConfig = {}
    if config.endpoint:
        settings["base_url"] = config.endpoint
    if config.service_account:
        settings["service_account_key"] = config.service_account
    if config.bearer_token:
        settings["bearer_token"] = config.bearer_token
    return GCSStore(
        bucket,
        prefix=path.strip("/") or None,
        config=settings,
        client_options=_client(config),
        retry_config=_retries(config),
    )


def _client(config: Config) -> ClientConfig:
    # The store's library follows redirects; from an https endpoint they lead to https alone.
    secure = config.endpoint is None or config.endpoint.startswith("https:")
    return {
        "allow_http": config.allow_http and not secure,
        "timeout": timedelta(seconds=config.timeout_seconds),
    }


def _retries(config: Config) -> RetryConfig:
    return {"retry_timeout": timedelta(seconds=config.retry_seconds)}
