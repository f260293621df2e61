"""structlog set up once per process: JSON for machines, colours for people, secrets for nobody.

One event a state change: `log.info("job_claimed", job_id=…)`. Values under a name that smells of a
secret are replaced, and so is the password inside any URL, whatever its key.
"""

from __future__ import annotations

import logging
import re
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, Protocol, TextIO
from uuid import UUID

import structlog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from structlog.typing import EventDict, FilteringBoundLogger, Processor

_SECRET_KEY = re.compile(
    r"password|passwd|secret|token|authorization|api_?key|credential|private_?key|cookie|dsn",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(?P<head>[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@/]+(?=@)", re.IGNORECASE)
_URL_TOKEN = re.compile(r"(?P<head>\b(?:nats|tls)://)[^\s:/@]+(?=@)", re.IGNORECASE)
"""NATS takes a token where others have a user."""
_BEARER = re.compile(r"(?P<head>\bbearer\s+)[^\s\"']+", re.IGNORECASE)
_HIDDEN = "[redacted]"
# Without the local variables of each frame: among them are connection strings and whole request
# bodies.
_tracebacks = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)


class Subject(Protocol):
    """What the events of a task are about."""

    def log_fields(self) -> Mapping[str, object]: ...


_subject: ContextVar[Subject | None] = ContextVar("log_subject", default=None)


def about(subject: Subject) -> None:
    """Add the subject's fields to every event of this task; they are asked for when there is
    one.
    """
    _subject.set(subject)


def _add_subject(_logger: object, _method: str, event: EventDict) -> EventDict:
    subject = _subject.get()
    return event if subject is None else {**subject.log_fields(), **event}


def scrub(text: str) -> str:
    """The text without the passwords and tokens that it carries."""
    for pattern in (_URL_PASSWORD, _URL_TOKEN, _BEARER):
        text = pattern.sub(rf"\g<head>{_HIDDEN}", text)
    return text


def redact(value: object, key: str = "") -> object:
    if key and _SECRET_KEY.search(key):
        return _HIDDEN
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {k: redact(v, str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [redact(v) for v in value]
    return str(value) if isinstance(value, UUID) else value


def _redact_event(_logger: object, _method: str, event: EventDict) -> EventDict:
    return {k: redact(v, k) for k, v in event.items()}


def configure(
    *,
    level: str = "INFO",
    form: Literal["json", "text"] = "json",
    stream: TextIO | None = None,
    process: str = "",
) -> None:
    out = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_subject,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Processor] = (
        [_tracebacks, _redact_event, structlog.processors.JSONRenderer(sort_keys=True)]
        if form == "json"
        else [structlog.processors.format_exc_info, _redact_event, _console(out)]
    )
    structlog.configure(
        processors=shared + last,
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=True,
    )
    if process:
        structlog.contextvars.bind_contextvars(process=process)


def _console(out: TextIO) -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
    )


def get(name: str) -> FilteringBoundLogger:
    logger: FilteringBoundLogger = structlog.get_logger(room=name.removeprefix("penstock."))
    return logger
