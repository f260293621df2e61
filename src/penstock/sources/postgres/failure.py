"""Translate PostgreSQL's errors: by SQLSTATE if there is one, otherwise by libpq's text.

A message is the server's own text, without the query, which the driver appends, and without the
password.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import adbc_driver_manager as adbc
import pyarrow as pa

from penstock.sources.errors import (
    SnapshotLost,
    SourceError,
    SourceQueryError,
    SourceRefused,
    SourceUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.kit.errors import PenstockError
    from penstock.sources.postgres.config import Config

_BY_STATE: dict[str, type[PenstockError]] = {
    "3D000": SourceRefused,
    "42501": SourceRefused,
    "57014": SourceUnavailable,
    "57P01": SourceUnavailable,
    "57P02": SourceUnavailable,
    "57P03": SourceUnavailable,
    "57P05": SourceUnavailable,
}
_BY_CLASS: dict[str, type[PenstockError]] = {
    "08": SourceUnavailable,
    "0A": SourceQueryError,
    "21": SourceQueryError,
    "22": SourceQueryError,
    "25": SourceQueryError,
    "28": SourceRefused,
    "3F": SourceQueryError,
    "40": SourceUnavailable,
    "42": SourceQueryError,
    "53": SourceUnavailable,
}
_SNAPSHOT_GONE = frozenset({"22023", "42704", "55000"})
"""Of `SET TRANSACTION SNAPSHOT`: no such file up to PostgreSQL 16 and from 17 on; its transaction
ended just now."""
_LATER = re.compile(
    r"too many|starting up|shutting down|recovery|not yet accepting|remaining connection slots"
)
_REFUSAL = re.compile(r"FATAL: |password|authentication|certificate|does not support SSL")
_WRAPPING = re.compile(
    r"^[A-Z_]+: (\[libpq\] )?(Failed to [a-z ]+: )?(could not begin COPY: )?|\s*Query was: .*",
    re.DOTALL,
)


@contextmanager
def translated(config: Config) -> Iterator[None]:
    try:
        yield
    except adbc.Error as e:
        raise explain(e, config) from None
    except pa.ArrowInvalid as e:
        raise SourceQueryError(_clean(str(e), config)) from None
    except OSError as e:
        raise SourceUnavailable(_clean(str(e), config)) from None


def explain(error: adbc.Error, config: Config) -> PenstockError:
    facts = {_text(name): _text(value) for name, value in error.details or ()}
    text = _clean(facts.get("PG_DIAG_MESSAGE_PRIMARY") or str(error), config)
    state = error.sqlstate
    if not state:
        return _without_state(text)
    kind = _BY_STATE.get(state) or _BY_CLASS.get(state[:2], SourceError)
    return kind(text, hint=facts.get("PG_DIAG_MESSAGE_HINT"), sqlstate=state)


@contextmanager
def joining_snapshot() -> Iterator[None]:
    """Wraps the statement that joins an exported snapshot."""
    try:
        yield
    except adbc.Error as e:
        if e.sqlstate not in _SNAPSHOT_GONE:
            raise
        raise SnapshotLost(
            "The snapshot that the chunks share no longer exists.", hint="Plan the chunks again."
        ) from None


def _without_state(text: str) -> PenstockError:
    """Classify an error by its text: there is no SQLSTATE before login and after a disconnect."""
    if _REFUSAL.search(text) and not _LATER.search(text):
        return SourceRefused(text)
    return SourceUnavailable(text)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _clean(text: str, config: Config) -> str:
    sentence = " ".join(_WRAPPING.sub("", text).split())
    return sentence.replace(config.password, "…") if config.password else sentence
