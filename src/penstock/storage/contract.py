"""The protocol of an object store.

Writes are atomic and never overwrite: `create` and `writer` fail when the key exists. Keys and
prefixes follow the rules in `keys`; a prefix ends with "/".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo:
    key: str
    size: int
    etag: str | None
    modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The result of a finished write."""

    key: str
    size: int
    etag: str | None
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An unfinished streamed write; its bytes appear in no listing of objects."""

    key: str
    id: str
    started: datetime


class Writer(Protocol):
    """A streamed write. Blocking, so use it in a thread; an exception inside `with` aborts it."""

    @property
    def size(self) -> int:
        """Bytes written so far."""
        ...

    def write(self, data: bytes | memoryview, /) -> int: ...

    def close(self) -> Stored:
        """Publish the object; until then nothing is visible under its key."""
        ...

    def abort(self) -> None: ...

    def __enter__(self) -> Writer: ...

    def __exit__(self, kind: object, error: object, trace: object) -> None: ...


class Uploads(Protocol):
    """The unfinished uploads of one store."""

    async def under(self, prefix: str) -> Sequence[Upload] | None:
        """The uploads under the prefix; None when the credentials do not allow listing them."""
        ...

    async def abort(self, uploads: Iterable[Upload]) -> None:
        """Free their bytes; missing uploads are ignored."""
        ...


class Store(Protocol):
    url: str
    """The location, without credentials."""

    uploads: Uploads

    async def check(self) -> None:
        """Connect to the store; raises the error if that fails."""
        ...

    async def create(self, key: str, data: bytes) -> Stored:
        """Put a small object; raises `ObjectExists` when the key exists. Exactly one of several
        concurrent calls succeeds."""
        ...

    def writer(self, key: str) -> Writer:
        """Stream an object of any size; raises `ObjectExists` like `create`, at the latest in
        `close`."""
        ...

    async def get(self, key: str) -> bytes: ...

    async def get_range(self, key: str, start: int, length: int) -> bytes: ...

    def stream(self, key: str) -> AsyncIterator[bytes]: ...

    async def head(self, key: str) -> ObjectInfo: ...

    async def exists(self, key: str) -> bool: ...

    def list(self, prefix: str) -> AsyncIterator[ObjectInfo]: ...

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; missing ones are ignored."""
        ...
