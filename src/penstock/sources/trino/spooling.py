"""Spooled results: segments of rows that lie in the cluster's storage, or in the answer itself when they are small.

A segment is compressed when it states an uncompressed size, whatever the encoding says. Both sizes are checked. It is
acknowledged, which deletes it, only after its rows are stored; one that is never acknowledged expires by itself.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.sources.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Trino writes LZ4 blocks without a frame.
_CODECS = {"json": None, "json+lz4": "lz4_raw", "json+zstd": "zstd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """`data` is there when the segment came inline; otherwise it is to be fetched from `uri`."""

    codec: str | None
    offset: int
    rows: int
    size: int
    uncompressed: int | None = None
    data: bytes | None = field(default=None, repr=False)
    uri: str = field(default="", repr=False)
    ack_uri: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def segments(spool: Mapping[str, Any]) -> list[Segment]:
    """The segments of one answer, in the order of their rows."""
    encoding = str(spool.get("encoding"))
    if encoding not in _CODECS:
        raise SourceError(f"Trino chose the encoding {encoding[:40]}, which was not asked for.")
    return sorted((_segment(each, _CODECS[encoding]) for each in spool["segments"]), key=lambda each: each.offset)


def _segment(raw: Mapping[str, Any], codec: str | None) -> Segment:
    metadata = raw["metadata"]
    uncompressed = metadata.get("uncompressedSize")
    return Segment(
        codec=None if uncompressed is None else codec,
        offset=metadata["rowOffset"],
        rows=metadata["rowsCount"],
        size=metadata["segmentSize"],
        uncompressed=uncompressed,
        data=b64decode(raw["data"]) if raw["type"] == "inline" else None,
        uri=raw.get("uri", ""),
        ack_uri=raw.get("ackUri"),
        headers={name: ",".join(values) for name, values in (raw.get("headers") or {}).items()},
    )


def unpack(segment: Segment, raw: bytes) -> bytes:
    """The segment's rows as JSON."""
    if len(raw) != segment.size:
        raise SourceError(f"A segment of {segment.size} bytes came with {len(raw)}.")
    if segment.codec is None:
        return raw
    try:
        page: bytes = pa.Codec(segment.codec).decompress(raw, segment.uncompressed, asbytes=True)
    except OSError:
        raise SourceError(f"A segment is not the {segment.codec} of {segment.uncompressed} bytes.") from None
    return page
