"""Translate obstore's exceptions into storage errors.

obstore's messages contain URLs, upload ids and whole server responses (some echo the access key),
so only the HTTP status, the server's error code and the errno are passed on.
"""

from __future__ import annotations

import errno
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from penstock.storage.errors import (
    BucketMissing,
    ObjectExists,
    ObjectMissing,
    StorageError,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.kit.errors import PenstockError

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>|\(code: (\w{1,64})\)")
_ERRNO = re.compile(r"\(os error (\d+)\)")

_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED_ERRNOS = {errno.EACCES, errno.EPERM, errno.EROFS}
_REFUSED_CODES = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"}

# Where obstore looks for credentials when none are configured; no key can contain these.
_NO_IDENTITY = ("token request", "://169.254.169.254/")

_MESSAGES: dict[type[PenstockError], tuple[str, str | None]] = {
    ObjectExists: ("{} exists already.", None),
    ObjectMissing: ("{} does not exist.", None),
    BucketMissing: ("The bucket of {} does not exist.", "Create it, or correct its name."),
    StorageFull: ("There is no space left for {}.", "Free some space, then try again."),
    StorageRefused: ("The storage refused access to {}.", "Check its credentials and permissions."),
    StorageUnavailable: ("The storage of {} is unreachable or overloaded.", None),
    StorageError: ("The storage returned an error for {}.", None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _ErrorFields:
    status: int
    code: str
    errno: int


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise a storage error instead of obstore's; `place` appears in the message."""
    try:
        yield
    except (BaseError, OSError) as e:
        raise to_storage_error(e, place) from None


def to_storage_error(error: Exception, place: str) -> PenstockError:
    text = str(error)
    fields = _ErrorFields(
        status=int(_first(_STATUS, text) or 0),
        code=_first(_CODE, text),
        errno=int(_first(_ERRNO, text) or 0),
    )
    kind = _kind(error, fields, text)
    message, hint = _MESSAGES[kind]
    return kind(message.format(place), hint=hint, **{k: v for k, v in asdict(fields).items() if v})


def _kind(error: Exception, fields: _ErrorFields, text: str) -> type[PenstockError]:
    if isinstance(error, AlreadyExistsError):
        return ObjectExists
    if fields.code == "NoSuchBucket":
        return BucketMissing
    if isinstance(error, FileNotFoundError):
        return ObjectMissing
    if fields.errno in _FULL_ERRNOS or fields.status == HTTPStatus.INSUFFICIENT_STORAGE:
        return StorageFull
    if _is_refusal(error, fields) or any(sign in text for sign in _NO_IDENTITY):
        return StorageRefused
    if (
        fields.status >= 500
        or fields.status == HTTPStatus.TOO_MANY_REQUESTS
        or "HTTP error" in text
    ):
        return StorageUnavailable
    return StorageError


def _is_refusal(error: Exception, fields: _ErrorFields) -> bool:
    return (
        isinstance(error, PermissionDeniedError | UnauthenticatedError)
        or fields.code in _REFUSED_CODES
        or fields.errno in _REFUSED_ERRNOS
        or fields.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    )


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return next((group for group in match.groups() if group), "") if match else ""
