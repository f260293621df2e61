"""Translate the errors of obstore and Arrow. obstore's messages contain URLs and whole responses,
so none of them is passed on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from penstock.kit.errors import PenstockError
from penstock.sources.errors import SourceError, SourceQueryError, SourceRefused, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_REFUSALS = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AccessDenied",
    "status code: 401",
    "status code: 403",
)
_SHOWN = 300


@contextmanager
def reached(place: str) -> Iterator[None]:
    """Wraps calls of obstore."""
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{place} does not exist.") from None
    except (PermissionDeniedError, UnauthenticatedError, PermissionError):
        raise SourceRefused(
            f"Access to {place} is refused.", hint="Check its credentials and permissions."
        ) from None
    except (BaseError, OSError) as e:
        if any(word in str(e) for word in _REFUSALS):
            raise SourceRefused(
                f"Access to {place} is refused.", hint="Check its credentials."
            ) from None
        raise SourceUnavailable(f"{place} cannot be reached.") from None


@contextmanager
def parsed(file: str) -> Iterator[None]:
    """Wraps Arrow's readers. Our own errors pass through Arrow, which chains them to its own."""
    try:
        yield
    except PenstockError:
        raise
    except pa.ArrowInvalid as e:
        raise ours(e) or SourceQueryError(
            f"{file}: {str(e)[:_SHOWN]}", hint=_hint(str(e))
        ) from None
    except (KeyError, OSError, pa.ArrowException, UnicodeError) as e:
        raise ours(e) or SourceError(f"{file} cannot be read: {str(e)[:_SHOWN]}") from None


def ours(error: BaseException) -> PenstockError | None:
    """The error that an `ObjectFile` raised while Arrow read it."""
    cause = error.__cause__ or error.__context__
    return cause if isinstance(cause, PenstockError) else None


def _hint(text: str) -> str | None:
    if "straddl" in text:
        return "A row is longer than csv.block_bytes: raise that setting."
    if "UTF8" in text:
        return "Set csv.encoding to the encoding of the files."
    if "CSV conversion error" in text:
        return "Correct the type of the column in types, or leave it out to read text."
    return None
