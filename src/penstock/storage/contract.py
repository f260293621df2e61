"""What a store must do, whichever it is.

An object appears whole or not at all, and never over another one: `create` and `writer` fail when
the name is taken. There is no overwrite. Keys and prefixes are those of `keys`; a prefix ends with
"/".
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
    """What a finished write left behind."""

    key: str
    size: int
    etag: str | None
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A streamed write that began and did not end: bytes that no listing of objects shows."""

    key: str
    id: str
    started: datetime


class Writer(Protocol):
    """A streamed write. It blocks, so use it in a thread; leaving `with` by an exception aborts it."""

    @property
    def size(self) -> int:
        """Bytes taken so far."""
        ...

    def write(self, data: bytes | memoryview, /) -> int: ...

    def close(self) -> Stored:
        """Publish the object; until then nothing is visible under its name."""
        ...

    def abort(self) -> None: ...

    def __enter__(self) -> Writer: ...

    def __exit__(self, kind: object, error: object, trace: object) -> None: ...


class Uploads(Protocol):
    """The unfinished writes of one store."""

    async def under(self, prefix: str) -> Sequence[Upload] | None:
        """None when this store's credentials do not let us look."""
        ...

    async def abort(self, uploads: Iterable[Upload]) -> None:
        """Free their bytes; one that is gone is fine."""
        ...


class Store(Protocol):
    url: str
    """Where it is, fit to be shown."""

    uploads: Uploads

    async def check(self) -> None:
        """Really ask; raises what is wrong."""
        ...

    async def create(self, key: str, data: bytes) -> Stored:
        """Put a small object; raises `ObjectExists` when the name is taken, and of many at once one
        wins."""
        ...

    def writer(self, key: str) -> Writer:
        """Stream an object of any size; raises `ObjectExists` as `create` does, at the latest in
        `close`."""
        ...

    async def get(self, key: str) -> bytes: ...

    async def get_range(self, key: str, start: int, length: int) -> bytes: ...

    def stream(self, key: str) -> AsyncIterator[bytes]: ...

    async def head(self, key: str) -> ObjectInfo: ...

    async def exists(self, key: str) -> bool: ...

    def list(self, prefix: str) -> AsyncIterator[ObjectInfo]: ...

    async def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; one that is not there is fine."""
        ...
