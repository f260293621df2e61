"""The files below one URL: list them, open them, and detect changes since the listing."""

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

_MAX_FILES = 100_000
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
                "files: url must not contain credentials.", hint="Set them as secrets."
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
                    f"files: {other}:// is not supported.",
                    hint="Use file://, s3:// or gs://.",
                )

    def entries(self) -> Sequence[Entry]:
        """All files except hidden ones and markers, sorted by path."""
        self._check_endpoint()
        files: list[Entry] = []
        with reached(self.url):
            for page in obstore.list(self._store, chunk_size=1000):
                files += [
                    Entry(path=meta["path"], size=meta["size"], etag=meta["e_tag"])
                    for meta in page
                    if _visible(meta["path"])
                ]
                if len(files) > _MAX_FILES:
                    raise SourceError(f"There are more than {_MAX_FILES} files below {self.url}.")
        return sorted(files, key=lambda entry: entry.path)

    def open(self, entry: Entry, stop: threading.Event) -> ObjectFile:
        self.check(entry)
        with reached(f"{self.url}/{entry.path}"):
            reader = obstore.open_reader(self._store, entry.path, buffer_size=_READ_AHEAD)
        return ObjectFile(reader, f"{self.url}/{entry.path}", stop)

    def _check_endpoint(self) -> None:
        """Check the endpoint before every call of obstore, which resolves names by itself.

        With TLS, a name that resolves to another server in the meantime fails the certificate
        check. Plain http has no such protection, so it is only for endpoints in private networks
        that the operator's policy allows."""
        if self._endpoint is None:
            return
        parts = urlsplit(self._endpoint)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            addresses = self._outbound.addresses(parts.hostname or "", port)
        except OSError:
            raise SourceUnavailable(f"Cannot resolve the host {parts.hostname}.") from None
        if parts.scheme != "https" and any(zone_of(a) is Zone.PUBLIC for a in addresses):
            raise SourceRefused(
                f"files: endpoint {parts.hostname} is on the internet and must use https."
            )

    def path(self, entry: Entry) -> Path | None:
        """The local path, for other readers; None if the files are not in a folder."""
        if self._folder is None:
            return None
        self.check(entry)
        return (self._folder / entry.path).resolve()

    def check(self, entry: Entry) -> None:
        """Check that the file is inside the folder, after resolving links, and unchanged.

        Call it again after the last read, because a file may be replaced while it is read.
        """
        self._check_endpoint()
        place = f"{self.url}/{entry.path}"
        if self._folder and not (self._folder / entry.path).resolve().is_relative_to(self._folder):
            raise SourceRefused(f"{place} is a link to a file outside of its folder.")
        with reached(place):
            now = obstore.head(self._store, entry.path)
        if (now["size"], now["e_tag"]) != (entry.size, entry.etag):
            raise SourceUnavailable(
                f"{place} has changed since it was listed.", hint="Read it again from the start."
            )


class ObjectFile:
    """A file object for Arrow; once `stop` is set, the next read raises."""

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
    regex = re.compile("".join(signs.get(part) or re.escape(part) for part in parts))
    return [entry for entry in entries if regex.fullmatch(entry.path)]


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
    # obstore follows redirects; from an https endpoint they must stay on https.
    secure = config.endpoint is None or config.endpoint.startswith("https:")
    return {
        "allow_http": config.allow_http and not secure,
        "timeout": timedelta(seconds=config.timeout_seconds),
    }


def _retries(config: Config) -> RetryConfig:
    return {"retry_timeout": timedelta(seconds=config.retry_seconds)}
