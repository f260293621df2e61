"""Detects truncated manifests and manifest lists before they are decoded.

PyIceberg does not detect truncation. A file cut between two Avro blocks reads as a shorter one, so
files that it references would look unreferenced. In a file cut inside a block, the decoder reads
past the end of the buffer, which may crash the process. Therefore all blocks are checked before
decoding. The length and the entry counts must also match the manifest list, and the manifests of a
snapshot must reference at least as many files as the snapshot's summary says.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from pyiceberg.io import InputFile

from penstock.maintenance.errors import TableUnreadable
from penstock.maintenance.tables.layout.sizes import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.io import FileIO, InputStream
    from pyiceberg.table.snapshots import Snapshot

TOTAL_DATA_FILES = "total-data-files"
TOTAL_DELETE_FILES = "total-delete-files"
_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_NUMBER_BITS = 70
_HINT = "Restore the file from a backup, or expire its snapshot with an engine that can read it."


class AvroContent(InputFile):
    """The bytes of a file, read once, for PyIceberg's Avro reader."""

    def __init__(self, location: str, content: bytes) -> None:
        super().__init__(location)
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002 - the library's signature
        return BytesIO(self._content)


def read_avro(io: FileIO, location: str) -> AvroContent:
    """Read an Avro file; TableUnreadable if it is truncated."""
    with io.new_input(location).open() as stream:
        content = stream.read()
    if not _is_whole(content):
        message = f"{location} is not a complete Avro file: it is truncated or damaged."
        raise TableUnreadable(message, hint=_HINT)
    return AvroContent(location, content)


def _is_whole(content: bytes) -> bool:
    """A header, then blocks of stated sizes, each with the sync marker of the header behind it."""
    try:
        sync, position = _header(content)
        while position < len(content):
            _, position = _number(content, position)
            size, position = _number(content, position)
            position = _behind(content, position, size)
            if content[position : position + _SYNC_SIZE] != sync:
                return False
            position += _SYNC_SIZE
    except _CutShort:
        return False
    return True


class _CutShort(Exception):
    """A number or a value extends beyond the end of the file."""


def _header(content: bytes) -> tuple[bytes, int]:
    """The sync marker, and where the first block begins."""
    if not content.startswith(_MAGIC):
        raise _CutShort
    position = len(_MAGIC)
    while True:
        pairs, position = _number(content, position)
        if pairs == 0:
            break
        if pairs < 0:  # the size of the pairs follows, for readers that skip them
            _, position = _number(content, position)
        for _ in range(2 * abs(pairs)):
            size, position = _number(content, position)
            position = _behind(content, position, size)
    end = _behind(content, position, _SYNC_SIZE)
    return content[position:end], end


def _number(content: bytes, position: int) -> tuple[int, int]:
    """A zigzag number of seven bits a byte, and where it ends."""
    value, shift = 0, 0
    while position < len(content) and shift < _NUMBER_BITS:
        byte = content[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise _CutShort


def _behind(content: bytes, position: int, size: int) -> int:
    if size < 0 or position + size > len(content):
        raise _CutShort
    return position + size


def check_length(location: str, length: int, expected: int | None) -> None:
    if expected is not None and length != expected:
        message = f"{location} has {length} bytes; its manifest list says {expected}."
        raise TableUnreadable(message, hint=_HINT)


def check_entries(
    location: str,
    *,
    live: int,
    deleted: int,
    added: int | None,
    existing: int | None,
    removed: int | None,
) -> None:
    """`added`, `existing` and `removed` are the counts in the manifest list, if it has them."""
    if added is not None and existing is not None and live != added + existing:
        message = f"{location} has {live} live entries; its list says {added + existing}."
        raise TableUnreadable(message, hint=_HINT)
    if removed is not None and deleted != removed:
        message = f"{location} has {deleted} deleted entries; its list says {removed}."
        raise TableUnreadable(message, hint=_HINT)


def check_totals(snapshot: Snapshot, counts: Mapping[str, int]) -> None:
    """`counts` are the live files of the snapshot's manifests, by the name of the total."""
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
    for name, count in counts.items():
        total = whole_number(str(summary.get(name, "")))
        if total is not None and count < total:
            raise TableUnreadable(
                f"The manifests in {snapshot.manifest_list} list {count} files, but the snapshot's "
                f"{name} is {total}: the list is truncated, or the summary is wrong.",
                hint=_HINT,
            )
