"""Converts an exception to a job failure: a code, a redacted message, and whether to retry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from penstock.jobs.model import Failed, Json
from penstock.kit.errors import PenstockError
from penstock.kit.logging import redact, scrub

if TYPE_CHECKING:
    import random

    from penstock.jobs.kinds import KindPolicy

MAX_MESSAGE = 2000
MAX_FACTS = 16_000


def describe(error: BaseException) -> dict[str, Json]:
    """The stored form of an exception. Foreign exceptions are retryable."""
    code, message, retryable = "INTERNAL", str(error) or type(error).__name__, True
    if isinstance(error, PenstockError):
        code, message, retryable = error.code, error.message, error.retryable
    described = {
        "code": code,
        "message": _storable(message),
        "type": type(error).__name__,
        "retryable": retryable,
    }
    return described | _more(error) if isinstance(error, PenstockError) else described


def _more(error: PenstockError) -> dict[str, Json]:
    """The hint, and the details unless they are too large to store."""
    more: dict[str, Json] = {} if error.hint is None else {"hint": _storable(error.hint)}
    facts = orjson.dumps(redact(error.details), default=str)
    if error.details and len(facts) <= MAX_FACTS and b"\\u0000" not in facts:
        more["details"] = orjson.loads(facts)
    return more


def failed(error: BaseException, policy: KindPolicy, attempt_no: int, rng: random.Random) -> Failed:
    described = describe(error)
    pause = policy.backoff.pause(attempt_no, rng) if described["retryable"] else None
    return Failed(error=described, retry_in=pause)


def final(code: str, message: str) -> Failed:
    return Failed(error={"code": code, "message": message, "type": "", "retryable": False})


def _storable(text: str) -> str:
    """Text that JSON and PostgreSQL accept, shortened to a readable length."""
    clean = scrub(text).encode(errors="replace").decode().replace("\x00", "\N{SYMBOL FOR NULL}")
    return clean if len(clean) <= MAX_MESSAGE else clean[: MAX_MESSAGE - 1] + "…"
