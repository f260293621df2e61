"""A database that fails on purpose: before a statement takes effect, or after its commit, when only
the reply is lost.

The second kind is the cruel one: the write stands and the writer is told that it failed. Each
operation may be given one fault; the connection is really cut, so whatever it had not committed is
undone by the server itself.
"""

from __future__ import annotations

import enum
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tests.proof.tapped import TappedConnection

_QUIET = ("BEGIN", "SAVEPOINT", "ROLLBACK")


class Fault(enum.Enum):
    BEFORE = "before"
    AFTER = "after"


@dataclass(slots=True, kw_only=True)
class Saboteur:
    """Cuts connections with the given probability of each kind per operation, and keeps count."""

    rng: random.Random
    before_rate: float = 0.05
    after_rate: float = 0.05
    done: dict[Fault, int] = field(default_factory=lambda: dict.fromkeys(Fault, 0))
    _armed: Fault | None = None
    _countdown: int = 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """One operation: with luck it goes through."""
        lot = self.rng.random()
        if lot < self.before_rate:
            self._armed = Fault.BEFORE
        elif lot < self.before_rate + self.after_rate:
            self._armed = Fault.AFTER
        self._countdown = self.rng.randint(1, 3 if self._armed is Fault.BEFORE else 2)
        try:
            yield
        finally:
            self._armed = None

    async def before(self, connection: TappedConnection, name: str) -> None:
        if self._armed is Fault.BEFORE and name not in _QUIET:
            self._countdown -= 1
            if not self._countdown:
                self._cut(connection)

    async def after(self, connection: TappedConnection, name: str) -> None:
        if self._armed is Fault.AFTER and name not in _QUIET and not connection.is_in_transaction():
            self._countdown -= 1
            if not self._countdown:
                self._cut(connection)

    def _cut(self, connection: TappedConnection) -> None:
        if self._armed is not None:
            self.done[self._armed] += 1
        self._armed = None
        connection.terminate()
        raise asyncpg.ConnectionDoesNotExistError("cut on purpose")
