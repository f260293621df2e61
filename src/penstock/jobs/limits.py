"""A limit on everything that a caller may ask of the kernel; past it the answer is a sentence,
never a surprise."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput
from penstock.kit.ids import check_name

if TYPE_CHECKING:
    from collections.abc import Sequence, Sized

MAX_BATCH = 10_000
MAX_CLAIM = 1000
MAX_QUEUES = 100
MAX_WAIT = 60.0
MAX_PAUSE = 86_400.0
"""How long a job may be parked, or put off between two attempts."""
MAX_SPAN = timedelta(days=3653)
"""How far ahead a start or a deadline may lie."""
MAX_TIMEOUT = timedelta(days=30)
MAX_KEY = 500
MAX_JOB_ID = 2**53 - 1
"""Every reader of JSON holds it exactly."""
PRIORITIES = range(10)


def check_batch(items: Sized) -> None:
    if len(items) > MAX_BATCH:
        raise InvalidInput(
            f"{len(items):,} items in one call; at most {MAX_BATCH:,} are taken.", limit=MAX_BATCH
        )


def check_claim(worker: str, queues: Sequence[str], limit: int, wait: float) -> None:
    if not 0 <= limit <= MAX_CLAIM:
        raise InvalidInput(f"A claim takes 0 to {MAX_CLAIM} jobs, not {limit}.")
    if not 0 <= wait <= MAX_WAIT:
        raise InvalidInput(f"A claim waits 0 to {MAX_WAIT:g} seconds, not {wait:g}.")
    if not limit:
        return
    check_name(worker, "Worker")
    if not 1 <= len(queues) <= MAX_QUEUES:
        raise InvalidInput(f"A claim names 1 to {MAX_QUEUES} queues, not {len(queues)}.")
    for queue in queues:
        check_name(queue, "Queue")


def check_pause(seconds: float) -> None:
    if not 0 <= seconds <= MAX_PAUSE:
        raise InvalidInput(
            f"A job can be put off for 0 to {MAX_PAUSE:,.0f} seconds, not {seconds:g}."
        )


def check_span(span: timedelta | None, what: str) -> None:
    if span is not None and not timedelta(0) <= span <= MAX_SPAN:
        raise InvalidInput(f"{what} must lie between now and {MAX_SPAN.days:,} days ahead.")


def check_text(text: str, what: str) -> str:
    """Free text that is stored as it is."""
    if len(text) > MAX_KEY or "\x00" in text:
        raise InvalidInput(f"{what} may have {MAX_KEY} characters and no NUL.")
    return text


def check_key(text: str | None, what: str) -> str | None:
    if text is not None and not text:
        raise InvalidInput(f"{what} must not be empty.")
    return None if text is None else check_text(text, what)
