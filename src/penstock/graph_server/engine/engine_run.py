"""One run of the engine (`Life`): a process, the requests in it, and why it ended.

`engine.py` runs clients' queries in it, `supervisor.py` begins it and asks the server's own.
"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson

from penstock.graph_server.engine import wire
from penstock.graph_server.engine.engine_work import CONVERTING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graph_server.engine.child import EngineChild

Reason: TypeAlias = Literal["overdue", "memory", "crash", "recycled"]


@dataclass(slots=True, eq=False)
class Query:
    """A client's request, through all its runs.

    It is `suspect` when the engine died or ran out of memory while it ran, and `wants_alone` when
    that happened again, or when it was the only one there. Then it is also `on_trial` if the engine
    crashed: it runs without the limit whose failed allocations engines may crash of, and is watched
    instead, to tell a query that takes too much from one that crashes the engine.

    Of the present run: `slots` that it has, whether it was `accompanied` by another query (or by
    what one left) at any time, and whether it `began_alone` because it was to."""

    method: str
    build: Callable[[float], object]
    timeout: float
    deadline: float
    suspect: bool = False
    wants_alone: bool = False
    on_trial: bool = False
    slots: int = 0
    accompanied: bool = False
    began_alone: bool = False
    sharing: asyncio.TimerHandle | None = None
    """Gives back the slots that keep others out."""

    @property
    def may_be_innocent(self) -> bool:
        """Whether what happened in the present run may be another query's fault."""
        return self.accompanied and not self.began_alone

    def suspect_again(self) -> None:
        self.wants_alone = self.suspect
        self.suspect = True

    def left(self) -> float:
        return max(self.deadline - asyncio.get_running_loop().time(), 0.0)

    def packed(self) -> bytes:
        arguments = {"asked": self.build(max(self.left(), 0.001)), "limited": not self.on_trial}
        return wire.Request(method=self.method, arguments=arguments).packed()


@dataclass(slots=True, eq=False)
class Life:
    child: EngineChild
    running: dict[wire.Channel, Query | None] = field(default_factory=dict)
    """Which query runs in a channel; None for what cannot be to blame for a death."""
    reason: Reason = "crash"
    blamed: Query | None = None
    witnesses: int = 0
    """Queries that were running when it ended."""
    has_leftovers: bool = False
    """A query ran out of memory in it, and what that left was not measured yet."""
    inspection: asyncio.Task[None] | None = None
    """Measures it; no query begins meanwhile."""

    @classmethod
    def begin(cls, child: EngineChild, ended: Callable[[Life], None]) -> Life:
        life = cls(child)

        def count() -> None:
            life.witnesses = sum(query is not None for query in life.running.values())
            ended(life)

        child.on_end = count
        return life

    def take(self, query: Query | None = None) -> wire.Channel:
        channel = self.child.take()
        if query is not None:
            others = [other for other in self.running.values() if other is not None]
            query.accompanied = bool(others) or self.has_leftovers
            for other in others:
                other.accompanied = True
        self.running[channel] = query
        return channel

    def release(self, channel: wire.Channel) -> None:
        """The channel's last reply was read to its end, or its process is gone."""
        self.running.pop(channel, None)
        self.child.give_back(channel)

    async def ask(self, method: str, **arguments: object) -> Any:
        """A request of the server's own, however long it takes; it continues when nobody waits any
        more."""
        task = asyncio.ensure_future(self._ask(method, arguments))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _ask(self, method: str, arguments: dict[str, object]) -> Any:
        channel = self.take()
        request = wire.Request(method=method, arguments=arguments)
        frame = await exchange(channel, request.packed())
        error = await frame.error() if frame.kind == wire.ERROR else None
        content = b"" if error is not None else await frame.whole()
        self.release(channel)
        if error is not None:
            raise error
        return orjson.loads(content)

    def is_to_blame(self, channel: wire.Channel) -> bool:
        """Whether a query that does not stop is itself the reason: while another's result is
        converted, no thread of the process can answer."""
        if self.child.phase(channel) == CONVERTING:
            return True
        others = (other for other in self.running if other is not channel)
        return not any(self.child.phase(other) == CONVERTING for other in others)

    def __str__(self) -> str:
        code = self.child.code
        if code is None:
            return "it runs"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


async def exchange(channel: wire.Channel, packed: bytes) -> wire.Frame:
    await channel.send(packed)
    return await channel.frame()
