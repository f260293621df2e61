"""The budget of an action: how many files, bytes and seconds it may use.

Files and bytes are limited when the action is planned, seconds between two pieces of its work. Each
piece is committed by itself, so an exhausted budget leaves a partial result and never a broken one.
The first piece is never refused for time, or a small budget would block an action for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.actions.model import Action

T = TypeVar("T")
SPENT = "The budget was used up before the action was complete."
TOO_SMALL = "The budget is too small to do any part of the action."


class Budget:
    def __init__(self, context: ActionContext, action: Action) -> None:
        self._context = context
        self._files = float(action.options.get("max_files", "inf"))
        self._bytes = float(action.options.get("max_bytes", "inf"))
        self._seconds = float(action.options.get("max_seconds", "inf"))
        self.spent = False
        """Whether any work was left out."""

    @property
    def sized(self) -> bool:
        return min(self._files, self._bytes) < float("inf")

    @property
    def timed(self) -> bool:
        return self._seconds < float("inf")

    def holds(self, files: int, size: int) -> bool:
        return files <= self._files and size <= self._bytes

    def take(self, files: int, size: int) -> None:
        self._files -= files
        self._bytes -= size

    def fitting(self, items: Iterable[T], size: Callable[[T], int]) -> list[T]:
        """The items that fit the remaining budget, one file each; an item that is too large is
        skipped and smaller ones after it are still taken."""
        taken = []
        for item in items:
            if self.holds(1, size(item)):
                self.take(1, size(item))
                taken.append(item)
            else:
                self.spent = True
        return taken

    def late(self) -> bool:
        """Whether the time limit has passed; checked between two pieces of work."""
        over = self._context.seconds > self._seconds
        self.spent = self.spent or over
        return over

    def message(self, *, done: bool) -> str:
        if not self.spent:
            return ""
        return SPENT if done else TOO_SMALL
