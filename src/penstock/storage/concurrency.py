"""Many small requests at once, but not too many."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

T = TypeVar("T")
R = TypeVar("R")


async def each(
    items: Iterable[T], ask: Callable[[T], Awaitable[R]], *, at_once: int = 32
) -> list[R]:
    """The answers, in the items' order; the first error stops the rest and is raised as it is."""
    places = asyncio.Semaphore(at_once)

    async def one(item: T) -> R:
        async with places:
            return await ask(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
