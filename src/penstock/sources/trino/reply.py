"""Parse a response of the statement protocol, leaving its rows as bytes.

The rows of a direct page are between `"data":[[` and `]],"stats":{`. Quotes in JSON strings are
escaped, so neither can occur in a value: the envelope is parsed without the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Required, TypedDict

import orjson

from penstock.sources.errors import SourceError
from penstock.sources.trino.failure import query_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.kit.errors import PenstockError
    from penstock.kit.json_value import JsonValue
    from penstock.sources.trino.spooling import Spool
    from penstock.sources.trino.types import Described

_OPENING, _CLOSING = b'"data":[[', b']],"stats":{'


class _Envelope(TypedDict, total=False):
    id: Required[str]
    nextUri: str
    stats: dict[str, JsonValue] | None
    columns: list[Described]
    data: list[JsonValue] | Spool | None
    updateCount: int
    error: dict[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A query has ended when there is no `next_uri`; `state` is informational."""

    query_id: str
    next_uri: str | None
    state: str
    columns: Sequence[Described] | None = None
    rows: bytes | None = None
    spool: Spool | None = None
    update_count: int | None = None
    error: PenstockError | None = None

    @property
    def has_rows(self) -> bool:
        return self.rows is not None or self.spool is not None

    def checked(self) -> Reply:
        if self.error is not None:
            raise self.error
        return self


def read_reply(body: bytes) -> Reply:
    envelope, rows = _split(body)
    data = envelope.get("data")
    error, stats = envelope.get("error"), envelope.get("stats")
    return Reply(
        query_id=envelope["id"],
        next_uri=envelope.get("nextUri") if error is None else None,
        state="" if stats is None else str(stats.get("state", "")),
        columns=envelope.get("columns"),
        rows=orjson.dumps(data) if isinstance(data, list) and data else rows,
        spool=data if isinstance(data, dict) else None,
        update_count=envelope.get("updateCount"),
        error=None if error is None else query_error(error, envelope["id"]),
    )


def _split(body: bytes) -> tuple[_Envelope, bytes | None]:
    start, end = body.find(_OPENING), body.rfind(_CLOSING)
    if 0 <= start < end:
        begin, stop = start + len(_OPENING) - 2, end + 2
        return _parsed(body[:begin] + b"null" + body[stop:]), body[begin:stop]
    return _parsed(body), None


def _parsed(envelope: bytes) -> _Envelope:
    try:
        document: _Envelope = orjson.loads(envelope)
    except orjson.JSONDecodeError:
        raise SourceError(
            "Trino did not return JSON; check that the address is a coordinator's."
        ) from None
    whole: object = document
    if not isinstance(whole, dict) or "id" not in whole:
        raise SourceError("Trino's response does not follow the statement protocol.")
    return document
