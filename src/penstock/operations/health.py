"""Whether everything that the platform stands on answers: each part is really asked, all at once,
none for long."""

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
    """Asks one component; raises what is wrong."""

log = logging.get(__name__)
HealthWord: TypeAlias = Literal["healthy", "unhealthy"]
OverallWord: TypeAlias = Literal["healthy", "degraded", "unhealthy"]
PATIENCE = 5.0
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
        patience: float = PATIENCE,
    ) -> None:
        """`sources` says whom else to ask today; when the database is away it cannot, and the
        answer tells so."""
        self._parts = parts
        self._sources = sources
        self._patience = patience

    async def ask(self) -> dict[str, Answer]:
        questions = dict(self._parts)
        try:
            async with asyncio.timeout(self._patience):
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
            async with asyncio.timeout(self._patience):
                await question()
        except TimeoutError:
            error = f"No answer within {self._patience:g} s."
        except PenstockError as e:
            error = e.message
        except Exception as e:
            log.exception("component_failed", component=name)
            error = f"It failed with {type(e).__name__}; the log has more."
        took = round((time.monotonic() - started) * 1000, 2)
        return Answer(status="unhealthy" if error else "healthy", latency_ms=took, error=error)


def overall(answers: Mapping[str, Answer]) -> OverallWord:
    """Without its database the platform is nothing; without another part it does less."""
    if answers[VITAL].status == "unhealthy":
        return "unhealthy"
    return (
        "degraded"
        if any(answer.status == "unhealthy" for answer in answers.values())
        else "healthy"
    )
