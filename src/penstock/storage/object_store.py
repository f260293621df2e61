"""Open a store by its URL: `file:///folder` or a plain path, `s3://bucket/prefix`,
`gs://bucket/prefix`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import obstore
from obstore.store import GCSStore, LocalStore, S3Store

from penstock.kit.errors import InvalidInput
from penstock.storage import unfinished_writes
from penstock.storage.contract import ObjectInfo, Store, Stored
from penstock.storage.errors import BucketMissing, ObjectMissing
from penstock.storage.keys import check_key, check_prefix
from penstock.storage.obstore_errors import translated
from penstock.storage.writer import ObjectWriter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from obstore import ObjectMeta
    from obstore.store import ClientConfig, GCSConfig, RetryConfig, S3Config
    from obstore.store import ObjectStore as RawStore

    from penstock.storage.contract import Uploads

MIN_PART_BYTES = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Connection options besides the URL. Without keys the ambient credentials are used
    (environment, role, metadata service)."""

    endpoint: str | None = None
    region: str = "us-east-1"
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    service_account: Path | None = None
    bearer_token: str | None = field(default=None, repr=False)
    allow_http: bool = False
    create_root: bool = False
    part_bytes: int = 8 * 1024 * 1024
    concurrency: int = 4
    timeout_seconds: float = 60.0
    retry_seconds: float = 120.0

    def __post_init__(self) -> None:
        if self.part_bytes < MIN_PART_BYTES:
            raise InvalidInput(
                f"part_bytes is {self.part_bytes}; object stores require at least 5 MiB."
            )


def open_store(url: str, *, options: StoreOptions | None = None) -> Store:
    """The store at a URL, without connecting; a local folder must exist."""
    options = options or StoreOptions()
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise InvalidInput(
            "A storage URL must not contain credentials.", hint="Pass them as options."
        )
    if parts.scheme in ("s3", "gs") and not parts.netloc:
        raise InvalidInput(f"The storage URL {url[:80]!r} has no bucket.")
    match parts.scheme:
        case "s3":
            return _open_s3(parts.netloc, _root(parts.path), options)
        case "gs":
            return _open_gcs(parts.netloc, _root(parts.path), options)
        case "file":
            return _open_folder(Path(unquote(parts.path)), options)
        case "":
            return _open_folder(Path(url).absolute(), options)
        case other:
            raise InvalidInput(
                f"There is no storage driver for {other}://.", hint="Use file://, s3:// or gs://."
            )


class ObjectStore:
    """A `Store` on obstore."""

    def __init__(self, raw: RawStore, *, url: str, uploads: Uploads, options: StoreOptions) -> None:
        self.url = url
        self.uploads = uploads
        self._raw = raw
        self._options = options

    async def check(self) -> None:
        with translated(self.url):
            async for _ in obstore.list(self._raw, chunk_size=1):
                return

    async def create(self, key: str, data: bytes) -> Stored:
        with translated(self._place(key)):
            result = await obstore.put_async(self._raw, check_key(key), data, mode="create")
        return Stored(
            key=key, size=len(data), etag=result["e_tag"], sha256=hashlib.sha256(data).hexdigest()
        )

    def writer(self, key: str) -> ObjectWriter:
        return ObjectWriter(
            self._raw,
            check_key(key),
            place=self._place(key),
            part_bytes=self._options.part_bytes,
            concurrency=self._options.concurrency,
        )

    async def get(self, key: str) -> bytes:
        with translated(self._place(key)):
            result = await obstore.get_async(self._raw, check_key(key))
            return bytes(await result.bytes_async())

    async def get_range(self, key: str, start: int, length: int) -> bytes:
        if not length:
            return b""
        with translated(self._place(key)):
            return bytes(
                await obstore.get_range_async(self._raw, check_key(key), start=start, length=length)
            )

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        with translated(self._place(key)):
            result = await obstore.get_async(self._raw, check_key(key))
            async for chunk in result.stream():
                yield bytes(chunk)

    async def head(self, key: str) -> ObjectInfo:
        with translated(self._place(key)):
            return _info(await obstore.head_async(self._raw, check_key(key)))

    async def exists(self, key: str) -> bool:
        try:
            await self.head(key)
        except ObjectMissing:
            return False
        return True

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        with translated(self._place(prefix)):
            async for chunk in obstore.list(
                self._raw, check_prefix(prefix) or None, chunk_size=1000
            ):
                for meta in chunk:
                    yield _info(meta)

    async def delete(self, keys: Iterable[str]) -> None:
        checked = [check_key(key) for key in keys]
        try:
            with translated(self.url):
                await obstore.delete_async(self._raw, checked)
        except ObjectMissing:
            for key in checked:
                await self._delete_one(key)

    async def _delete_one(self, key: str) -> None:
        with translated(self._place(key)):
            try:
                await obstore.delete_async(self._raw, key)
            except FileNotFoundError:
                return

    def _place(self, key: str) -> str:
        return f"{self.url}/{key}"


def _info(meta: ObjectMeta) -> ObjectInfo:
    return ObjectInfo(
        key=meta["path"], size=meta["size"], etag=meta["e_tag"], modified=meta["last_modified"]
    )


def _open_folder(root: Path, options: StoreOptions) -> Store:
    if options.create_root:
        root.mkdir(parents=True, exist_ok=True)
    if not root.is_dir():
        raise BucketMissing(
            f"The folder {root} does not exist.", hint="Create it, or mount its volume."
        )
    raw = LocalStore(root, automatic_cleanup=True)
    return ObjectStore(
        raw, url=f"file://{root}", uploads=unfinished_writes.StagedFiles(root), options=options
    )


def _open_s3(bucket: str, root: str, options: StoreOptions) -> Store:
    config: S3Config = {"region": options.region, "virtual_hosted_style_request": False}
    if options.endpoint:
        config["endpoint"] = options.endpoint
    if options.access_key_id and options.secret_access_key:
        config["access_key_id"] = options.access_key_id
        config["secret_access_key"] = options.secret_access_key
    if options.session_token:
        config["session_token"] = options.session_token
    raw = S3Store(
        bucket,
        prefix=root or None,
        config=config,
        client_options=_client(options),
        retry_config=_retries(options),
    )
    pending = _s3_uploads(bucket, root, options)
    return ObjectStore(
        raw, url=f"s3://{bucket}/{root}".rstrip("/"), uploads=pending, options=options
    )


def _s3_uploads(bucket: str, root: str, options: StoreOptions) -> Uploads:
    if not (options.access_key_id and options.secret_access_key):
        return unfinished_writes.HiddenUploads()
    endpoint = (options.endpoint or f"https://s3.{options.region}.amazonaws.com").rstrip("/")
    sign = unfinished_writes.aws(
        options.access_key_id,
        options.secret_access_key,
        region=options.region,
        session=options.session_token,
    )
    return unfinished_writes.MultipartUploads(f"{endpoint}/{bucket}", sign, root=root)


def _open_gcs(bucket: str, root: str, options: StoreOptions) -> Store:
    config: GCSConfig = {}
    if options.endpoint:
        config["base_url"] = options.endpoint
    if options.service_account:
        config["service_account"] = str(options.service_account)
    if options.bearer_token:
        config["bearer_token"] = options.bearer_token
    raw = GCSStore(
        bucket,
        prefix=root or None,
        config=config,
        client_options=_client(options),
        retry_config=_retries(options),
    )
    pending = _gcs_uploads(bucket, root, options)
    return ObjectStore(
        raw, url=f"gs://{bucket}/{root}".rstrip("/"), uploads=pending, options=options
    )


def _gcs_uploads(bucket: str, root: str, options: StoreOptions) -> Uploads:
    if not options.bearer_token:
        return unfinished_writes.HiddenUploads()
    endpoint = (options.endpoint or "https://storage.googleapis.com").rstrip("/")
    return unfinished_writes.MultipartUploads(
        f"{endpoint}/{bucket}", unfinished_writes.bearer(options.bearer_token), root=root
    )


def _root(path: str) -> str:
    return check_prefix(f"{path.strip('/')}/" if path.strip("/") else "")


def _client(options: StoreOptions) -> ClientConfig:
    return {"allow_http": options.allow_http, "timeout": timedelta(seconds=options.timeout_seconds)}


def _retries(options: StoreOptions) -> RetryConfig:
    return {"retry_timeout": timedelta(seconds=options.retry_seconds)}
