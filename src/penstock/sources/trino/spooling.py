"""Spooled results: segments of rows in the cluster's storage, or inline in the response if small.

A segment is compressed if it has an uncompressed size, whatever the encoding says. Both sizes are
checked. It is acknowledged, which deletes it, only after its rows are stored; an unacknowledged
segment expires.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Required, TypedDict

import pyarrow as pa

from penstock.kit.outbound import DEFAULT_ANSWER_BYTES
from penstock.sources.errors import SourceError
from penstock.sources.rest import TOO_LARGE_HINT

if TYPE_CHECKING:
    from collections.abc import Mapping

# Trino writes LZ4 blocks without a frame.
_CODECS = {"json": None, "json+lz4": "lz4_raw", "json+zstd": "zstd"}


class _Metadata(TypedDict, total=False):
    rowOffset: Required[int]
    rowsCount: Required[int]
    segmentSize: Required[int]
    uncompressedSize: int


class _ListedSegment(TypedDict, total=False):
    type: Required[Literal["inline", "spooled"]]
    metadata: Required[_Metadata]
    data: str
    uri: str
    ackUri: str
    headers: dict[str, list[str]] | None


class Spool(TypedDict):
    """The `data` of a response whose rows are in segments; nothing in it is checked yet."""

    encoding: str
    segments: list[_ListedSegment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """`data` is set for an inline segment; otherwise fetch it from `uri`."""

    codec: str | None
    offset: int
    rows: int
    size: int
    uncompressed: int | None = None
    data: bytes | None = field(default=None, repr=False)
    uri: str = field(default="", repr=False)
    ack_uri: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def segments(spool: Spool, *, max_bytes: int = DEFAULT_ANSWER_BYTES) -> list[Segment]:
    """The segments of one response, in row order."""
    encoding = str(spool.get("encoding"))
    if encoding not in _CODECS:
        raise SourceError(f"Trino chose the encoding {encoding[:40]}, which was not requested.")
    try:
        listed = [_segment(raw, _CODECS[encoding]) for raw in spool["segments"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SourceError("Trino's list of segments is invalid.") from None
    for segment in listed:
        if max(segment.size, segment.uncompressed or 0) > max_bytes:
            raise SourceError(
                f"Trino listed a segment of more than {max_bytes:,} bytes.", hint=TOO_LARGE_HINT
            )
    return sorted(listed, key=lambda segment: segment.offset)


def _segment(raw: _ListedSegment, codec: str | None) -> Segment:
    metadata = raw["metadata"]
    uncompressed = metadata.get("uncompressedSize")
    return Segment(
        codec=None if uncompressed is None else codec,
        offset=_count(metadata["rowOffset"]),
        rows=_count(metadata["rowsCount"]),
        size=_count(metadata["segmentSize"]),
        uncompressed=None if uncompressed is None else _count(uncompressed),
        data=b64decode(raw["data"]) if raw["type"] == "inline" else None,
        uri=str(raw.get("uri") or ""),
        ack_uri=None if raw.get("ackUri") is None else str(raw["ackUri"]),
        headers={name: ",".join(values) for name, values in (raw.get("headers") or {}).items()},
    )


def _count(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError("not a count")
    return value


def unpack(segment: Segment, raw: bytes) -> bytes:
    """The segment's rows as JSON."""
    if len(raw) != segment.size:
        raise SourceError(f"A segment has {len(raw)} bytes instead of {segment.size}.")
    if segment.codec is None:
        return raw
    try:
        page: bytes = pa.Codec(segment.codec).decompress(raw, segment.uncompressed, asbytes=True)
    except OSError:
        raise SourceError(
            f"A segment does not decompress with {segment.codec} to {segment.uncompressed} bytes."
        ) from None
    return page
