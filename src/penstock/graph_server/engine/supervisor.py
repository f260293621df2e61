"""Keeps one engine process running: starts it, opens the graph in it and replaces it when it
ends.

After the graph was sealed a process that ended is replaced within a fraction of a second: a spare
one with its libraries imported is always waiting. What algorithms had written back is written
again, from files that were kept for this.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.graph_server.engine import wire
from penstock.graph_server.engine.child import EngineChild
from penstock.graph_server.engine.engine_run import Life, Query, Reason
from penstock.graph_server.engine.engine_work import EXECUTING, Opened, Written, WrittenBack
from penstock.graph_server.engine.falkor_server import FalkorServer
from penstock.graphdb.errors import EngineRestarted, GraphFailed
from penstock.graphdb.registry import Opening
from penstock.kit import logging, memory
from penstock.kit.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path

    from penstock.graph_server.isolation.isolation import Isolation
    from penstock.graph_server.settings import InstanceSettings
    from penstock.graphdb.contract import GraphSchema

log = logging.get(__name__)
MOST_RUNS = 4
"""Of one request, when the engine is restarted under it again and again."""
ATTEMPTS = 3
"""At starting an engine again, before the graph server gives up."""
SERVER_END_SECONDS = 2.0
CLOSE_SECONDS = 5.0


class Supervisor:
    def __init__(
        self, settings: InstanceSettings, isolation: Isolation, *, lost: Callable[[str], None]
    ) -> None:
        """`lost` hears that the engine cannot be started again."""
        self._settings = settings
        self._isolation = isolation
        self._lost = lost
        self._life: Life | None = None
        self._spare: EngineChild | None = None
        self._server: FalkorServer | None = None
        self._folder: Path | None = None
        self._schema: GraphSchema | None = None
        self._counts: dict[str, int] = {}
        self._written: dict[tuple[str, str], Written] = {}
        self._sealed = False
        self._reviving = False
        self._ready = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self.query_bytes = settings.query_bytes(settings.cache_bytes)
        self.restarts: Counter[Reason] = Counter()

    # before the graph is sealed

    def warm_up(self) -> None:
        """Start a process ahead of time: importing its libraries takes a while."""
        self._spare = self._spare or EngineChild(self._settings.backend)

    async def open(self, folder: Path, files: Sequence[Path]) -> Opened:
        """An empty graph in `folder`; `files` are the folders that it will be loaded from."""
        self._folder = folder
        if self._settings.backend == "falkordb" and self._settings.falkordb_url is None:
            self._server = FalkorServer(
                folder, self._settings, self._isolation, on_end=self._server_ended
            )
            await self._server.start()
        life = self._begin(files)
        try:
            opened = await self._open(life)
        except wire.EngineGone:
            raise await _ended_early(life, "open") from None
        self._ready.set()
        return opened

    async def seal(self, schema: GraphSchema) -> None:
        """From here on a process that ends is replaced."""
        await self.call("seal")
        if self._server is not None:
            await self._server.save()
        self._schema = schema
        self._counts = await self.call("counts")
        await self._restrict(await self.living())
        self._sealed = True
        self.warm_up()

    # from then on

    async def living(self, query: Query | None = None) -> Life:
        """The running engine; waits up to the query's timeout for one that is starting."""
        if not self._ready.is_set():
            try:
                async with asyncio.timeout(None if query is None else query.left()):
                    await self._ready.wait()
            except TimeoutError:
                raise EngineRestarted(
                    (
                        "The graph engine is being restarted, and was not back within the query's "
                        "time."
                    ),
                    hint="Try again in a moment.",
                ) from None
        assert self._life is not None
        return self._life

    async def call(self, method: str, **arguments: object) -> Any:
        """An internal request; once the graph is sealed it is retried after a restart."""
        for _ in range(MOST_RUNS):
            life = await self.living()
            try:
                return await life.ask(method, **arguments)
            except wire.EngineGone:
                await life.child.ended.wait()
                if not self._sealed:
                    raise await _ended_early(life, method) from None
        raise EngineRestarted("The graph engine was restarted again and again.")

    async def write_back(self, written: Written) -> WrittenBack:
        """Set a property from a file, which is moved to where a restart finds it."""
        assert self._folder is not None
        moved = replace(written, file=_written_back(self._folder) / f"{time.monotonic_ns()}.arrow")
        written.file.rename(moved.file)
        try:
            answer: WrittenBack = await self.call("write_back", written=moved)
        except BaseException:
            moved.file.unlink()
            raise
        before = self._written.pop((written.label, written.name), None)
        self._written[written.label, written.name] = moved
        if before is not None:
            before.file.unlink()
        return answer

    def end(self, life: Life, reason: Reason, blamed: wire.Channel | None = None) -> None:
        """Kill an engine, for its replacement; of FalkorDB's server and our client of it, the one
        that does not answer."""
        if life.child.code is not None or life.reason != "crash":
            return
        self._ready.clear()
        life.reason = reason
        life.blamed = None if blamed is None else life.running.get(blamed)
        in_server = blamed is None or life.child.phase(blamed) == EXECUTING
        if self._server is not None and reason != "recycled" and in_server:
            self._server.kill()
        life.child.kill()

    @property
    def pids(self) -> list[int]:
        """The processes that hold the graph."""
        server = [] if self._server is None or self._server.pid is None else [self._server.pid]
        return ([] if self._life is None else [self._life.child.pid]) + server

    def held_bytes(self) -> int:
        """Memory of the processes that hold the graph."""
        return sum(map(memory.held_bytes, self.pids))

    @property
    def spare_pids(self) -> list[int]:
        return [] if self._spare is None else [self._spare.pid]

    @property
    def current(self) -> Life | None:
        """The engine that answers, if one does."""
        return self._life if self._sealed and self._ready.is_set() else None

    async def server_ended(self, life: Life) -> bool:
        """Whether the server behind an engine is gone, after a query could not reach it."""
        if self._server is None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(SERVER_END_SECONDS):
                await life.child.ended.wait()
        return life.child.code is not None

    async def close(self) -> None:
        self._closing = True
        for task in self._tasks:
            task.cancel()
        if self._server is None and self._url() is not None and self._ready.is_set():
            with suppress(wire.EngineGone, PenstockError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await (await self.living()).ask("close")
        for child in (self._spare, None if self._life is None else self._life.child):
            if child is not None:
                await child.close()
        if self._server is not None:
            await self._server.close()

    def _begin(self, files: Sequence[Path]) -> Life:
        assert self._folder is not None
        child, self._spare = self._spare or EngineChild(self._settings.backend), None
        child.confine(
            self._isolation.engine_reach(
                read=[*files, _written_back(self._folder)],
                write=[self._folder, _scratch(self._folder)],
                database_url=self._url(),
            )
        )
        life = self._life = Life.begin(child, self._ended)
        return life

    async def _open(self, life: Life) -> Opened:
        assert self._folder is not None
        opening = Opening(
            folder=self._folder,
            memory_bytes=self._settings.cache_bytes,
            threads=self._settings.cpu,
            url=self._url(),
            name=f"penstock-{self._settings.id}",
            schema=self._schema,
        )
        backend = self._settings.backend
        opened: Opened = await life.ask("open", backend=backend, opening=opening)
        return opened

    def _url(self) -> str | None:
        if self._server is not None:
            return self._server.url
        url = self._settings.falkordb_url
        return None if url is None else url.get_secret_value()

    async def _restrict(self, life: Life) -> None:
        if self._server is not None:
            self.query_bytes = await self._server.restrict()
        await life.ask("restrict", query_bytes=self.query_bytes)

    def _ended(self, life: Life) -> None:
        """Called when a process has ended, before its waiters are notified."""
        if self._closing or life is not self._life:
            return
        self._ready.clear()
        if self._sealed and not self._reviving:
            self._reviving = True
            self.restarts[life.reason] += 1
            log.warning("engine_ended", reason=life.reason, how=str(life), queries=life.witnesses)
            self._task(self._revive())

    def _server_ended(self, out_of_memory: bool) -> None:
        """Without its FalkorDB the engine process is of no use."""
        if self._life is None:
            return
        if out_of_memory and self._life.reason == "crash":
            self._life.reason = "memory"
        self._life.child.kill()

    async def _revive(self) -> None:
        began = time.monotonic()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._reopen()
            except (wire.EngineGone, PenstockError, OSError) as e:
                log.exception(
                    "engine_not_restarted", attempt=attempt, error=str(e) or type(e).__name__
                )
                continue
            log.info("engine_restarted", seconds=round(time.monotonic() - began, 3))
            self.warm_up()
            return
        self._lost("The graph engine ended and could not be started again.")

    async def _reopen(self) -> None:
        if self._server is not None and not self._server.is_alive:
            await self._server.start()
        life = self._begin(())
        try:
            await self._open(life)
            if (counts := await life.ask("counts")) != self._counts:
                raise GraphFailed(f"The graph holds {counts} after a restart, not {self._counts}.")
            for written in self._written.values():
                await life.ask("write_back", written=written)
            await self._restrict(life)
        except BaseException:
            await life.child.close()
            raise
        self._reviving = False
        self._ready.set()

    def _task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _ended_early(life: Life, method: str) -> GraphFailed:
    await life.child.ended.wait()
    return GraphFailed(
        f"The graph engine's process ended during {method} ({life}).",
        hint="Was there enough memory? The instance's log may say more.",
    )


def _written_back(folder: Path) -> Path:
    """Beside the engine's own folder, which is read as a whole by the engine."""
    place = folder.parent / "written"
    place.mkdir(exist_ok=True)
    return place


def _scratch(folder: Path) -> Path:
    """Where algorithms find the graph's tables."""
    scratch = folder.parent / "algorithms"
    scratch.mkdir(exist_ok=True)
    return scratch
