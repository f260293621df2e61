"""Stream an object into a store without overwriting an existing one.

An object that fits in one part is put with create-if-absent. A larger one is a multipart upload,
which obstore cannot make conditional: the writer first creates `<key>.claim` with create-if-absent,
checks that the key is free, and checks again before it publishes. So exactly one of several
streamed writers of a key wins; keys contain the attempt, so other writers never use the same one.
A killed writer leaves a claim and an unfinished upload, which the sweeper removes.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import obstore

from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.storage.contract import Stored
from penstock.storage.errors import ObjectDamaged, ObjectExists
from penstock.storage.obstore_errors import translated

if TYPE_CHECKING:
    from obstore import WritableFile
    from obstore.store import ObjectStore

log = logging.get(__name__)


class ObjectWriter:
    def __init__(
        self, raw: ObjectStore, key: str, *, place: str, part_bytes: int, concurrency: int
    ) -> None:
        self._raw = raw
        self._key = key
        self._claim = f"{key}.claim"
        self._place = place
        self._part_bytes = part_bytes
        self._concurrency = concurrency
        self._head = bytearray()
        self._upload: WritableFile | None = None
        self._claimed = False
        self._open = True
        self._digest = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> ObjectWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self.abort()
        elif self._open:
            self.close()

    def write(self, data: bytes | memoryview, /) -> int:
        if not self._open:
            raise ValueError(f"write to closed object {self._place}")
        length = len(data)
        self._digest.update(data)
        self.size += length
        if self._upload is None and self.size <= self._part_bytes:
            self._head += data
            return length
        with translated(self._place):
            upload = self._upload or self._begin()
            upload.write(data)
        return length

    def close(self) -> Stored:
        try:
            etag = self._put() if self._upload is None else self._complete(self._upload)
        except PenstockError:
            self.abort()
            raise
        self._open = False
        return Stored(key=self._key, size=self.size, etag=etag, sha256=self._digest.hexdigest())

    def abort(self) -> None:
        """Remove the upload and the claim; what fails is logged and left to the sweeper."""
        if not self._open:
            return
        self._open = False
        for undo in (self._drop_upload, self._release):
            try:
                undo()
            except PenstockError as e:
                log.warning("upload_not_aborted", place=self._place, code=e.code)

    def _drop_upload(self) -> None:
        with translated(self._place):
            if self._upload is not None and not self._upload.closed():
                self._upload.__exit__(InterruptedError, InterruptedError(), None)

    def _begin(self) -> WritableFile:
        obstore.put(self._raw, self._claim, b"", mode="create")
        self._claimed = True
        self._check_free()
        self._upload = obstore.open_writer(
            self._raw, self._key, buffer_size=self._part_bytes, max_concurrency=self._concurrency
        )
        self._upload.write(self._head)
        self._head = bytearray()
        return self._upload

    def _put(self) -> str | None:
        with translated(self._place):
            return obstore.put(self._raw, self._key, bytes(self._head), mode="create")["e_tag"]

    def _complete(self, upload: WritableFile) -> str | None:
        with translated(self._place):
            self._check_free()
            upload.close()
            info = obstore.head(self._raw, self._key)
        if info["size"] != self.size:
            raise ObjectDamaged(
                f"{self._place} has {info['size']} bytes, but {self.size} were written."
            )
        self._release()
        return info["e_tag"]

    def _check_free(self) -> None:
        try:
            obstore.head(self._raw, self._key)
        except FileNotFoundError:
            return
        raise ObjectExists(f"{self._place} exists already.")

    def _release(self) -> None:
        if not self._claimed:
            return
        with translated(self._place):
            try:
                obstore.delete(self._raw, self._claim)
            except FileNotFoundError:
                log.warning("claim_gone", place=self._place)
        self._claimed = False
