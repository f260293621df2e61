"""How much an action may do. Files and bytes are settled when it is planned, seconds between two
pieces of its work.

What is done is committed piece by piece, so a budget that ends an action early leaves it done in
part, never half done. The first piece is not refused for time: an action that never begins would
never end either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.actions.model import Action

T = TypeVar("T")
SPENT = "The budget was spent."
TOO_SMALL = "The budget is too small for any of it."


class Budget:
    def __init__(self, run: Run, action: Action) -> None:
        self._run = run
        self._files: float = action.options.get("max_files", float("inf"))
        self._bytes: float = action.options.get("max_bytes", float("inf"))
        self._seconds: float = action.options.get("max_seconds", float("inf"))
        self.spent = False
        """Whether something had to be left out."""

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
        """Those that fit into what is left, each one file; a large one does not stand in the way of
        smaller ones."""
        taken = []
        for item in items:
            if self.holds(1, size(item)):
                self.take(1, size(item))
                taken.append(item)
            else:
                self.spent = True
        return taken

    def late(self) -> bool:
        """Asked between two pieces of work."""
        over = self._run.seconds > self._seconds
        self.spent = self.spent or over
        return over

    def message(self, *, done: bool) -> str:
        if not self.spent:
            return ""
        return SPENT if done else TOO_SMALL
