"""From what obstore raises to what we raise.

Its texts hold URLs, upload ids and whole answers of the server (some echo the access key), so
nothing of a text is passed on but the status, the server's error code and the errno.
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

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_REFUSED_CODES = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"}

# Where obstore looks for an identity when it was given none; no key can contain these.
_NO_IDENTITY = ("token request", "://169.254.169.254/")

_SENTENCES: dict[type[PenstockError], tuple[str, str | None]] = {
    ObjectExists: ("{} is there already.", None),
    ObjectMissing: ("{} does not exist.", None),
    BucketMissing: ("The bucket of {} does not exist.", "Create it, or correct its name."),
    StorageFull: ("There is no space left for {}.", "Free some space, then try again."),
    StorageRefused: ("The storage refused access to {}.", "Check its credentials and permissions."),
    StorageUnavailable: ("The storage of {} cannot be reached or is too busy.", None),
    StorageError: ("The storage answered with an error for {}.", None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    status: int
    code: str
    errno: int


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise our own error in place of obstore's; `place` is shown."""
    try:
        yield
    except (BaseError, OSError) as e:
        raise fault(e, place) from None


def fault(error: Exception, place: str) -> PenstockError:
    text = str(error)
    facts = _Facts(
        status=int(_first(_STATUS, text) or 0),
        code=_first(_CODE, text),
        errno=int(_first(_ERRNO, text) or 0),
    )
    kind = _kind(error, facts, text)
    sentence, hint = _SENTENCES[kind]
    return kind(sentence.format(place), hint=hint, **{k: v for k, v in asdict(facts).items() if v})


def _kind(error: Exception, facts: _Facts, text: str) -> type[PenstockError]:
    if isinstance(error, AlreadyExistsError):
        return ObjectExists
    if facts.code == "NoSuchBucket":
        return BucketMissing
    if isinstance(error, FileNotFoundError):
        return ObjectMissing
    if facts.errno in _FULL or facts.status == HTTPStatus.INSUFFICIENT_STORAGE:
        return StorageFull
    if _is_refusal(error, facts) or any(sign in text for sign in _NO_IDENTITY):
        return StorageRefused
    if facts.status >= 500 or facts.status == HTTPStatus.TOO_MANY_REQUESTS or "HTTP error" in text:
        return StorageUnavailable
    return StorageError


def _is_refusal(error: Exception, facts: _Facts) -> bool:
    return (
        isinstance(error, PermissionDeniedError | UnauthenticatedError)
        or facts.code in _REFUSED_CODES
        or facts.errno in _REFUSED
        or facts.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    )


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return next((group for group in match.groups() if group), "") if match else ""
