"""The graph engine as the rest of the server uses it: requests and results, across restarts of
its process.

A query that does not stop within `kill_seconds` of its timeout, or that takes more memory than
there is, costs the engine process its life; so does a crash of the engine. The supervisor starts
the next one, and queries that were running are run again, for they only read. Which of several
crashed it nobody knows, so those that were there are run again one at a time. One that is there a
second time is run with the engine to itself, if only for a moment, and only what happens then is
its own fault: other queries may have come beside it each time before.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, TypeAlias

from pydantic import TypeAdapter

from penstock.graph_server.engine import wire
from penstock.graph_server.engine.engine_run import Life, Query, exchange
from penstock.graph_server.engine.supervisor import MOST_RUNS, Supervisor
from penstock.graphdb.contract import Capabilities, Loaded
from penstock.graphdb.errors import (
    EngineCrashed,
    EngineRestarted,
    QueryInterrupted,
    QueryOutOfMemory,
    out_of_memory,
)
from penstock.kit.errors import PenstockError, Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
    from pathlib import Path

    from penstock.graph_server.engine.engine_work import Question, Written, WrittenBack
    from penstock.graph_server.engine.neighbourhood import Neighborhood
    from penstock.graph_server.isolation.isolation import Isolation
    from penstock.graph_server.settings import InstanceSettings
    from penstock.graphdb.contract import Dangling, EdgeTable, GraphSchema, NodeTable

    Gone: TypeAlias = Callable[[], Awaitable[None]]
    """Returns when the client has disconnected."""

PULL_SECONDS = 0.05
WATCH_SECONDS = 0.01
MOST_OPEN_ANSWERS = 128
_SPARED = 8
"""How many times `kill_seconds` a query is spared that cannot answer because another's result is
converted."""
ALONE_SECONDS = 1.0
"""How long others wait at most for a query that is to begin alone: to let it begin, and from then
on."""
_CAPABILITIES = TypeAdapter(Capabilities)
_KEPT_SHARE = 0.5
"""Of the queries' memory: an idle process that keeps more than this is replaced."""


class Answer:
    """An answer that has begun; its content is read as fast as the client takes it. Close it."""

    def __init__(
        self, engine: Engine, life: Life, channel: wire.Channel, frame: wire.Frame
    ) -> None:
        self._engine = engine
        self._life = life
        self._channel = channel
        self._frame = frame
        self._is_read = False
        self._is_closed = False

    @property
    def length(self) -> int | None:
        """None for a stream, whose length is unknown."""
        return self._frame.length if self._frame.kind == wire.REPLY else None

    async def whole(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def pieces(self) -> AsyncIterator[bytes]:
        """Breaks off with an error when the engine dies under it, and never ends as if it were
        whole."""
        try:
            while self._frame.kind == wire.CHUNK:
                async for piece in self._frame.pieces():
                    yield piece
                self._frame = await self._channel.frame()
            if self._frame.kind == wire.ERROR:
                error = await self._frame.error()
                self._is_read = True
                raise error
            async for piece in self._frame.pieces():
                yield piece
            self._is_read = True
        except wire.EngineGone:
            self._is_read = True
            raise _cut_off() from None
        finally:
            self.close()

    def close(self) -> None:
        """Whether it was read to its end or not."""
        if not self._is_closed:
            self._is_closed = True
            self._engine.close_answer(
                self._life, self._channel, None if self._is_read else self._frame
            )


class Engine:
    def __init__(
        self, settings: InstanceSettings, isolation: Isolation, *, lost: Callable[[str], None]
    ) -> None:
        """`lost` hears that the engine ended and cannot be started again."""
        self.supervisor = Supervisor(settings, isolation, lost=lost)
        self._kill_seconds = settings.kill_seconds
        self._most_queries = settings.queries
        self._slots = asyncio.Semaphore(settings.queries)
        self._suspects = asyncio.Lock()
        self._queries: set[Query] = set()
        self._open_answers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._capabilities: Capabilities | None = None

    @property
    def active(self) -> int:
        """Queries that run or wait."""
        return len(self._queries)

    @property
    def capabilities(self) -> Capabilities:
        assert self._capabilities is not None
        return self._capabilities

    # the graph

    async def open(self, folder: Path, files: Sequence[Path]) -> None:
        """An empty graph in `folder`; `files` are the folders that it will be loaded from."""
        opened = await self.supervisor.open(folder, files)
        self._capabilities = _CAPABILITIES.validate_python(opened["capabilities"])

    async def create(self, schema: GraphSchema) -> None:
        await self.supervisor.call("create", schema=schema)

    async def load(
        self, table: NodeTable | EdgeTable, files: Sequence[Path], *, dangling: Dangling
    ) -> Loaded:
        loaded = await self.supervisor.call("load", table=table, files=files, dangling=dangling)
        return Loaded(rows=loaded["rows"], dropped=loaded["dropped"])

    async def counts(self) -> dict[str, int]:
        counts: dict[str, int] = await self.supervisor.call("counts")
        return counts

    async def seal(self, schema: GraphSchema) -> None:
        """Everything is loaded; from here on queries are answered."""
        await self.supervisor.seal(schema)

    async def node_file(self, label: str, properties: Sequence[str], path: Path) -> None:
        """A label's nodes as an Arrow file, for algorithms."""
        await self.supervisor.call("node_file", label=label, properties=properties, path=path)

    async def edge_file(self, table: EdgeTable, properties: Sequence[str], path: Path) -> None:
        await self.supervisor.call("edge_file", table=table, properties=properties, path=path)

    async def write_back(self, written: Written) -> WrittenBack:
        """How many nodes got a value, and the properties that the label was given until now."""
        return await self.supervisor.write_back(written)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.supervisor.close()

    # answers

    async def query(
        self, build: Callable[[float], Question], *, timeout: float, gone: Gone | None = None
    ) -> Answer:
        """`build` makes the question, with the time that is left when it is its turn."""
        return await self._answer("query", build, timeout, gone)

    async def stream(
        self, build: Callable[[float], Question], *, timeout: float, gone: Gone | None = None
    ) -> Answer:
        return await self._answer("stream", build, timeout, gone)

    async def subgraph(
        self, build: Callable[[float], Neighborhood], *, timeout: float, gone: Gone | None = None
    ) -> Answer:
        return await self._answer("subgraph", build, timeout, gone)

    async def _answer(
        self, method: str, build: Callable[[float], object], timeout: float, gone: Gone | None
    ) -> Answer:
        deadline = asyncio.get_running_loop().time() + timeout
        query = Query(method, build, timeout, deadline)
        watch = asyncio.ensure_future(gone()) if gone else None
        self._queries.add(query)
        try:
            for _ in range(MOST_RUNS):
                async with self._alone(query) if query.suspect else nullcontext():
                    answer = await self._run(query, watch)
                if answer is not None:
                    return answer
            raise EngineRestarted(
                f"The graph engine was restarted {MOST_RUNS} times while the query ran.",
                hint="Other queries ended it. Try again in a moment.",
            )
        finally:
            if watch is not None:
                watch.cancel()
            if not query.slots:
                self._queries.discard(query)

    async def _run(self, query: Query, watch: asyncio.Future[None] | None) -> Answer | None:
        """One run; None when it is to be run again."""
        await self._take_slot(query)
        try:
            if query.wants_alone:
                await self._take_all_slots(query)
            life = await self._inspected_life(query)
            packed = query.packed()
            channel = life.take(query)
        except wire.EngineGone:
            self._give_slot(query)
            return None
        except BaseException:
            self._give_slot(query)
            raise
        query.began_alone = query.slots == self._most_queries and not query.accompanied
        if query.slots > 1:
            loop = asyncio.get_running_loop()
            query.sharing = loop.call_later(ALONE_SECONDS, self._give_slots, query, 1)
        if query.on_trial:
            self._task(self._watch_memory(life))
        reading = asyncio.ensure_future(exchange(channel, packed))
        waiting: set[asyncio.Future[wire.Frame] | asyncio.Future[None]] = {reading}
        if watch is not None:
            waiting.add(watch)
        try:
            await asyncio.wait(waiting, timeout=query.left(), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task(self._stop(life, channel, query, reading))
            raise
        if not reading.done():
            stopping = self._task(self._stop(life, channel, query, reading))
            # Nearly always it has ended by then; where it has not, its client need not wait for
            # that.
            await asyncio.wait({stopping}, timeout=self._kill_seconds + PULL_SECONDS)
            raise _out_of_time(query)
        return await self._outcome(life, channel, query, reading)

    async def _watch_memory(self, life: Life) -> None:
        """End an engine that takes more than queries may while a query is on trial."""
        most = self.supervisor.held_bytes() + self.supervisor.query_bytes
        while any(query is not None and query.on_trial for query in life.running.values()):
            if self.supervisor.held_bytes() > most:
                self.supervisor.end(life, "memory")
                return
            await asyncio.sleep(WATCH_SECONDS)

    async def _outcome(
        self, life: Life, channel: wire.Channel, query: Query, reading: asyncio.Future[wire.Frame]
    ) -> Answer | None:
        try:
            frame = reading.result()
            error = await frame.error() if frame.kind == wire.ERROR else None
        except wire.EngineGone:
            await life.child.ended.wait()
            life.release(channel)
            self._give_slot(query)
            return self._judge(life, query)
        if isinstance(error, Unavailable) and await self.supervisor.server_ended(life):
            life.release(channel)
            self._give_slot(query)
            return self._judge(life, query)
        self._give_slot(query)
        if error is None:
            return self._opened(life, channel, frame)
        if isinstance(error, QueryOutOfMemory):
            life.has_leftovers = True
        self._release(life, channel)
        return self._refuse(query, error)

    def _refuse(self, query: Query, error: PenstockError) -> Answer | None:
        if isinstance(error, QueryInterrupted):
            raise _out_of_time(query)
        if isinstance(error, QueryOutOfMemory) and query.may_be_innocent:
            query.suspect_again()
            return None
        raise error

    def _judge(self, life: Life, query: Query) -> Answer | None:
        """What becomes of a query whose engine died: it is run again (None), or it is an error."""
        if life.reason == "overdue":
            if life.blamed is query:
                raise _out_of_time(query)
            return None
        if life.reason == "recycled":
            return None
        if query.may_be_innocent:
            query.suspect_again()
            return None
        if life.reason == "memory":
            raise out_of_memory(self.supervisor.query_bytes)
        if not query.on_trial:
            query.suspect = query.wants_alone = query.on_trial = True
            return None
        raise EngineCrashed(
            f"The query crashed the graph engine ({life}), which was restarted.",
            hint=(
                "The graph is unchanged. Write the query in another way, or use another "
                "wrapper_type."
            ),
        )

    async def _stop(
        self, life: Life, channel: wire.Channel, query: Query, reading: asyncio.Future[wire.Frame]
    ) -> None:
        """Interrupt a query until it ends; end its process when it does not hear."""
        now = asyncio.get_running_loop().time
        # One that cannot be interrupted ends by its own time, also when nobody waits for it.
        due = now() if self.capabilities.interrupt else max(now(), query.deadline)
        while not reading.done():
            life.child.interrupt(channel)
            await asyncio.wait({reading}, timeout=PULL_SECONDS)
            late = now() - due
            limit = self._kill_seconds * (1 if life.is_to_blame(channel) else _SPARED)
            if late > limit:
                self.supervisor.end(life, "overdue", channel)
        if reading.exception() is None:
            await self._drained(life, channel, reading.result())
        else:
            await life.child.ended.wait()
            life.release(channel)
        self._give_slot(query)
        self._queries.discard(query)

    @asynccontextmanager
    async def _alone(self, query: Query) -> AsyncIterator[None]:
        """No other suspect runs meanwhile."""
        try:
            async with asyncio.timeout(query.left()):
                await self._suspects.acquire()
        except TimeoutError:
            raise EngineRestarted(
                (
                    "The graph engine was restarted, and the query's time was up before it could "
                    "run again."
                ),
                hint="Try again in a moment.",
            ) from None
        try:
            yield
        finally:
            self._suspects.release()

    async def _take_slot(self, query: Query) -> None:
        if self._slots.locked():
            try:
                async with asyncio.timeout(query.left()):
                    await self._slots.acquire()
            except TimeoutError:
                raise _out_of_time(query) from None
        else:
            await self._slots.acquire()
        query.slots = 1

    async def _take_all_slots(self, query: Query) -> None:
        """Wait for the queries that run while none begins, but not for long: they may take their
        time."""
        try:
            async with asyncio.timeout(min(query.left(), ALONE_SECONDS)):
                while query.slots < self._most_queries:
                    await self._slots.acquire()
                    query.slots += 1
        except TimeoutError:
            self._give_slots(query, 1)

    def _give_slot(self, query: Query) -> None:
        if query.sharing is not None:
            query.sharing.cancel()
            query.sharing = None
        self._give_slots(query, 0)

    def _give_slots(self, query: Query, remaining: int) -> None:
        while query.slots > remaining:
            query.slots -= 1
            self._slots.release()

    # answers that are being read

    def _opened(self, life: Life, channel: wire.Channel, frame: wire.Frame) -> Answer:
        """The engine has done its part: the next query may begin while this answer is read."""
        life.running[channel] = None
        self._open_answers += 1
        answer = Answer(self, life, channel, frame)
        if self._open_answers > MOST_OPEN_ANSWERS:
            answer.close()
            raise Unavailable(
                f"{MOST_OPEN_ANSWERS} answers are being read already.",
                hint="Try again in a moment.",
            )
        return answer

    def close_answer(self, life: Life, channel: wire.Channel, rest: wire.Frame | None) -> None:
        """`rest` is the part that is discarded."""
        self._open_answers -= 1
        if rest is None:
            self._release(life, channel)
        else:
            self._task(self._drained(life, channel, rest))

    async def _drained(self, life: Life, channel: wire.Channel, frame: wire.Frame) -> None:
        try:
            while True:
                life.child.interrupt(channel)
                async for _ in frame.pieces():
                    continue
                if frame.kind != wire.CHUNK:
                    break
                frame = await channel.frame()
        except wire.EngineGone:
            await life.child.ended.wait()
        self._release(life, channel)

    # what queries that ran out of memory left

    def _release(self, life: Life, channel: wire.Channel) -> None:
        life.release(channel)
        self._inspect_if_due(life)

    def _inspect_if_due(self, life: Life) -> None:
        if life.has_leftovers and not life.running and life.inspection is None:
            life.inspection = self._task(self._inspect(life))

    async def _inspected_life(self, query: Query) -> Life:
        """The engine, after what a query that ran out of memory left in it was measured: whoever
        begins on it before that may run out of memory too."""
        while True:
            life = await self.supervisor.living(query)
            self._inspect_if_due(life)
            if life.inspection is None or life.inspection.done():
                return life
            await asyncio.wait({life.inspection}, timeout=query.left())
            if not query.left():
                raise _out_of_time(query)

    async def _inspect(self, life: Life) -> None:
        """Replace a process that keeps more than its share after giving back what is free."""
        try:
            grown: int = (await life.ask("grown"))["bytes"]
        except wire.EngineGone:
            await life.child.ended.wait()
            return
        except PenstockError:  # not even enough memory for this answer
            grown = self.supervisor.query_bytes
        life.has_leftovers = False
        life.inspection = None
        if grown > self.supervisor.query_bytes * _KEPT_SHARE:
            self.supervisor.end(life, "recycled")

    def _task(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _out_of_time(query: Query) -> QueryInterrupted:
    return QueryInterrupted(
        f"The query took longer than {query.timeout:g} s and was stopped.",
        hint="Ask for less, or give it more time with timeout_ms.",
        timeout_ms=int(query.timeout * 1000),
    )


def _cut_off() -> EngineRestarted:
    return EngineRestarted(
        "The graph engine was restarted while its answer was read.", hint="Try again."
    )
