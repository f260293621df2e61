"""Checks a workbook, which is a zip archive: first its directory, then that the directory is
true."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput, PayloadTooLarge
from penstock.reconcile.uploads.parsing.limits import MAX_ENTRIES

if TYPE_CHECKING:
    import zipfile

    from penstock.reconcile.uploads.parsing.limits import TableLimits

_PIECE = 1024 * 1024
_ENDLESS = 2**60


def check_archive(book: zipfile.ZipFile, limits: TableLimits) -> None:
    entries = book.infolist()
    if len(entries) > MAX_ENTRIES:
        message = f"The workbook has more than {MAX_ENTRIES:,} files in it."
        raise PayloadTooLarge(message, limit=MAX_ENTRIES)
    unpacked = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries)
    limits.check_unpacked(unpacked, packed, "workbook")
    if len({entry.filename for entry in entries}) != len(entries):
        raise InvalidInput(
            "The workbook contains two files of the same name.", hint="Save it again."
        )
    for entry in entries:
        _check_size(book, entry)


def _check_size(book: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Other zip readers do not stop at the size that the entry claims."""
    unbounded = copy.copy(entry)
    unbounded.file_size = _ENDLESS
    size = 0
    with book.open(unbounded) as file:
        while piece := file.read(_PIECE):
            size += len(piece)
            if size > entry.file_size:
                break
    if size != entry.file_size:
        raise InvalidInput(
            f"The workbook says that {entry.filename[:80]!r} has {entry.file_size:,} bytes, "
            "which is wrong.",
            hint="Save it again.",
        )
