"""Errors of the storage package; a message names the location and the next step, never a
credential.

StorageError              502  STORAGE_ERROR
├── BucketMissing              STORAGE_BUCKET_MISSING
├── StorageRefused             STORAGE_REFUSED
├── StorageFull           507  STORAGE_FULL
└── ObjectDamaged              OBJECT_DAMAGED
    └── RowsDiffer             ROWS_DIFFER
StorageUnavailable        503  STORAGE_UNAVAILABLE  (retryable)
ObjectMissing             404  OBJECT_MISSING
ObjectExists              409  OBJECT_EXISTS
SchemaMismatch            422  SCHEMA_MISMATCH
"""

from __future__ import annotations

from penstock.kit.errors import Conflict, InvalidInput, NotFound, PenstockError, Unavailable


class StorageError(PenstockError):
    """The storage returned an error; `details` has its status and code."""

    code = "STORAGE_ERROR"
    status = 502


class BucketMissing(StorageError):
    """The bucket or root folder does not exist."""

    code = "STORAGE_BUCKET_MISSING"


class StorageRefused(StorageError):
    """Wrong key, no permission, or no credentials at all."""

    code = "STORAGE_REFUSED"


class StorageFull(StorageError):
    """No space or no quota left; nothing of the object is visible."""

    code = "STORAGE_FULL"
    status = 507


class ObjectDamaged(StorageError):
    """The stored object differs from what was written."""

    code = "OBJECT_DAMAGED"


class RowsDiffer(ObjectDamaged):
    """The row counts in the footers differ from the rows that were sent."""

    code = "ROWS_DIFFER"


class StorageUnavailable(Unavailable):
    """The storage is down, overloaded or timed out; a retry may succeed."""

    code = "STORAGE_UNAVAILABLE"


class ObjectMissing(NotFound):
    """There is no such object in the storage."""

    code = "OBJECT_MISSING"


class ObjectExists(Conflict):
    """The key exists; nothing was written."""

    code = "OBJECT_EXISTS"


class SchemaMismatch(InvalidInput):
    """A batch does not have the declared columns, or a column cannot be stored in Parquet."""

    code = "SCHEMA_MISMATCH"
