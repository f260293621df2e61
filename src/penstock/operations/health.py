"""Health of the platform: checks every component concurrently, each with a timeout."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.kit import logging
from penstock.kit.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Question: TypeAlias = Callable[[], Awaitable[object]]
    """Checks one component; raises if it is unhealthy."""

log = logging.get(__name__)
HealthWord: TypeAlias = Literal["healthy", "unhealthy"]
OverallWord: TypeAlias = Literal["healthy", "degraded", "unhealthy"]
TIMEOUT_SECONDS = 5.0
VITAL = "database"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: HealthWord
    latency_ms: float
    error: str | None = None


class Health:
    def __init__(
        self,
        parts: Mapping[str, Question],
        sources: Callable[[], Awaitable[Mapping[str, Question]]],
        *,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        """`sources` lists the data sources to check; without the database they are skipped."""
        self._parts = parts
        self._sources = sources
        self._timeout = timeout

    async def ask(self) -> dict[str, Answer]:
        questions = dict(self._parts)
        try:
            async with asyncio.timeout(self._timeout):
                questions |= await self._sources()
        except (PenstockError, TimeoutError) as e:
            log.warning("sources_not_asked", error=str(e))
        answers = await asyncio.gather(
            *(self._answer(name, question) for name, question in questions.items())
        )
        return dict(zip(questions, answers, strict=True))

    async def _answer(self, name: str, question: Question) -> Answer:
        started = time.monotonic()
        error: str | None = None
        try:
            async with asyncio.timeout(self._timeout):
                await question()
        except TimeoutError:
            error = f"No answer within {self._timeout:g} s."
        except PenstockError as e:
            error = e.message
        except Exception as e:
            log.exception("component_failed", component=name)
            error = f"The check failed with {type(e).__name__}; see the log."
        took = round((time.monotonic() - started) * 1000, 2)
        return Answer(status="unhealthy" if error else "healthy", latency_ms=took, error=error)


def overall(answers: Mapping[str, Answer]) -> OverallWord:
    """Unhealthy without the database, degraded without any other component."""
    if answers[VITAL].status == "unhealthy":
        return "unhealthy"
    return (
        "degraded"
        if any(answer.status == "unhealthy" for answer in answers.values())
        else "healthy"
    )
