"""Runs a few actors over one database in every order of their statements.

An actor is real code of the kernel on a connection of its own. Before each statement and each
commit it waits for its turn; who has the turn is decided from outside, so an order of steps can be
chosen, repeated and varied. A statement that waits for another actor's lock is recognised by
PostgreSQL's own account of who blocks whom; its turn goes to the others until the lock is free. All
orders are walked depth first: run one, note where another actor could have had the turn, and run
again from there. With `switches` only orders with that many changes of a willing actor are walked,
which is where bugs are and keeps three actors affordable.

`BEGIN` and savepoints change nothing that another session sees (each statement has its own
snapshot), so they are no steps. A crash is a step at which an actor's connection is cut instead.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.jobs.kinds import Kinds
from penstock.jobs.store import PgJobStore
from tests.proof.proof_db import POLICIES
from tests.proof.tapped import TappedDb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from tests.proof.proof_db import ProofDatabase
    from tests.proof.tapped import TappedConnection

Script: TypeAlias = "Callable[[PgJobStore, TappedDb], Awaitable[object]]"
NO_STEPS = {"BEGIN", "SAVEPOINT"}
PATIENCE = 20.0
_BLOCKED = "SELECT pid FROM unnest($1::int[]) AS t (pid) WHERE pg_blocking_pids(pid) && $2::int[]"
_GONE = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)"


class Crashed(Exception):
    """The actor's process is gone, and its connection with it."""


class Actor:
    """One connection, one script, and the turnstile between its steps."""

    def __init__(self, dsn: str, name: str) -> None:
        self.name = name
        self.db = TappedDb(dsn, self)
        self.pid = 0
        self.at: str | None = None
        self.crashed = False
        self.result: object = None
        self.moved = asyncio.Event()
        self._crash_at: int | None = None
        self._steps = 0
        self._go = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self, script: Script, crash_at: int | None) -> None:
        self._steps, self._crash_at = 0, crash_at
        self.at, self.crashed, self.result = None, False, None
        self.moved.clear()
        self._task = asyncio.create_task(self._run(script))

    def step(self) -> None:
        self.moved.clear()
        self._go.set()

    async def before(self, connection: TappedConnection, name: str) -> None:
        if self.crashed:
            raise Crashed
        self.pid = connection.get_server_pid()
        if name not in NO_STEPS:
            await self._turn(name)
            if self._steps == self._crash_at:
                self.crashed = True
                connection.terminate()
                raise Crashed

    async def _turn(self, name: str) -> None:
        self.at = name
        self.moved.set()
        await self._go.wait()
        self._go.clear()
        self.at = None
        self._steps += 1

    async def after(self, connection: TappedConnection, name: str) -> None:
        """Nothing is held back after a statement: what it did is done."""

    async def _run(self, script: Script) -> None:
        try:
            self.result = await script(PgJobStore(self.db, Kinds(POLICIES)), self.db)
        except Exception as e:
            self.result = e
        finally:
            self.moved.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One walk: which actor did which step, and what became of each."""

    steps: Sequence[tuple[str, str]]
    results: Mapping[str, Any]
    deadlocks: int

    def __str__(self) -> str:
        return " ".join(f"{actor}:{step}" for actor, step in self.steps)


@dataclass(slots=True)
class _Fork:
    taken: int
    width: int


@dataclass(slots=True, kw_only=True)
class Explorer:
    proof_db: ProofDatabase
    actors: Mapping[str, Actor]
    orders: int = 0
    _forks: list[_Fork] = field(default_factory=list)

    async def walk(
        self,
        arrange: Callable[[], Awaitable[Mapping[str, Script]]],
        *,
        switches: int | None = None,
        crash: tuple[str, int] | None = None,
    ) -> AsyncIterator[Order]:
        """Every order of the scripts that `arrange` gives; it is called afresh, on empty tables,
        for each of them."""
        self._forks = []
        while True:
            await self.proof_db.empty()
            yield await self._order(await arrange(), switches, crash)
            self.orders += 1
            while self._forks and self._forks[-1].taken + 1 >= self._forks[-1].width:
                self._forks.pop()
            if not self._forks:
                return
            self._forks[-1].taken += 1

    async def _order(
        self,
        scripts: Mapping[str, Script],
        switches: int | None,
        crash: tuple[str, int] | None,
    ) -> Order:
        cast = [self.actors[name] for name in scripts]
        before = sum(a.db.deadlocks for a in cast)
        for actor in cast:
            actor.begin(scripts[actor.name], crash[1] if crash and crash[0] == actor.name else None)
        steps: list[tuple[str, str]] = []
        last: Actor | None = None
        depth = 0
        await self._settle(cast)
        while willing := [a for a in cast if a.at is not None]:
            willing.sort(key=lambda a: a is not last)
            free = switches is None or switches > 0 or willing[0] is not last
            choice = self._choose(depth, len(willing) if free else 1)
            if switches is not None and choice and willing[0] is last:
                switches -= 1
            last = willing[choice]
            steps.append((last.name, last.at or ""))
            depth += 1
            last.step()
            await self._settle(cast)
        del self._forks[depth:]
        deadlocks = sum(a.db.deadlocks for a in cast) - before
        return Order(steps=steps, results={a.name: a.result for a in cast}, deadlocks=deadlocks)

    def _choose(self, depth: int, width: int) -> int:
        """Two that wait for one lock may be woken in either order, so a fork can be wider or
        narrower than before."""
        if depth == len(self._forks):
            self._forks.append(_Fork(0, width))
        fork = self._forks[depth]
        fork.width = width
        return min(fork.taken, width - 1)

    async def _settle(self, cast: Sequence[Actor]) -> None:
        """Until every actor is at a turnstile, at its end, or waits for another's lock."""
        deadline = time.monotonic() + PATIENCE
        while True:
            waits = [asyncio.create_task(a.moved.wait()) for a in cast]
            _, late = await asyncio.wait(waits, timeout=0.004)
            for wait in late:
                wait.cancel()
            for actor in cast:
                if actor.crashed:
                    await self._end_of(actor.pid)
            moving = [a for a in cast if not a.moved.is_set()]
            if not moving or (any(a.at for a in cast) and await self._blocked(moving, cast)):
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"nobody moves: {[a.name for a in moving]}")

    async def _blocked(self, moving: Sequence[Actor], cast: Sequence[Actor]) -> bool:
        """By each other: what a vacuum holds up goes on by itself."""
        blocked = await self.proof_db.eye.fetch(
            _BLOCKED, [a.pid for a in moving], [a.pid for a in cast]
        )
        return len(blocked) == len(moving)

    async def _end_of(self, pid: int) -> None:
        """The server notices a cut connection by itself; only then are its locks free."""
        deadline = time.monotonic() + PATIENCE
        while not await self.proof_db.eye.fetchval(_GONE, pid):
            if time.monotonic() > deadline:
                raise AssertionError(f"the session {pid} did not end")
