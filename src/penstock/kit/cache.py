"""Answers of the database that hold until something changes, and for a moment at most.

`version` counts the changes that this process has heard of, and is None while it cannot hear of
them. An answer is as old as the version from before it was asked for: a change that commits while
it is on its way is heard of later, and makes it old. Whoever changes something rings after the
commit and before they answer, so in their own process it holds from then on; elsewhere it does
when the notification has come, and if that was lost, after `seconds`.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

V = TypeVar("V")
SECONDS = 1.0
MOST = 10_000


@dataclass(frozen=True, slots=True)
class _Answer(Generic[V]):
    value: V
    version: int
    until: float


class InvalidatedCache(Generic[V]):
    def __init__(
        self,
        version: Callable[[], int | None],
        *,
        seconds: float = SECONDS,
        most: int = MOST,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._version = version
        self._seconds = seconds
        self._most = most
        self._ticks = ticks
        self._answers: OrderedDict[Hashable, _Answer[V]] = OrderedDict()

    async def get(
        self,
        key: Hashable,
        look: Callable[[], Awaitable[V | None]],
        *,
        lasts: Callable[[V], bool] = lambda _: True,
    ) -> V | None:
        """What `look` says, or said lately. That there is nothing, and what does not last, is not
        remembered."""
        version, now = self._version(), self._ticks()
        answer = self._answers.get(key)
        if answer is not None and answer.version == version and now < answer.until:
            return answer.value
        value = await look()
        if value is None or version is None or not lasts(value):
            self._answers.pop(key, None)
            return value
        self._answers[key] = _Answer(value, version, now + self._seconds)
        self._answers.move_to_end(key)
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)
        return value

    def forget(self, key: Hashable) -> None:
        self._answers.pop(key, None)
