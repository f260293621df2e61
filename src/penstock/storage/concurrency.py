"""Run many small requests concurrently, up to a limit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

T = TypeVar("T")
R = TypeVar("R")


async def each(
    items: Iterable[T], call: Callable[[T], Awaitable[R]], *, at_once: int = 32
) -> list[R]:
    """The results in the order of the items; the first error cancels the rest and is raised."""
    semaphore = asyncio.Semaphore(at_once)

    async def bounded(item: T) -> R:
        async with semaphore:
            return await call(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(bounded(item)) for item in items]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
