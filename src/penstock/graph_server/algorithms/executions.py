"""Runs algorithms: start, watch, cancel, list, and write-back by one at a time.

An execution takes its part of the graph out of the engine (once for each selection), has a child
compute, and writes the values as columns. Whoever writes holds the lock from before its first step
until its last, however it ends. Only writing is never broken off: it is short, and half a column
would be worse than a late cancel.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.graph_server.algorithms.children import Children
from penstock.graph_server.algorithms.execution import Execution, brief, holding
from penstock.graph_server.algorithms.extraction import Extraction
from penstock.graph_server.engine.engine_work import Written
from penstock.graphdb.algorithms.errors import (
    AlgorithmCancelled,
    AlgorithmFailed,
    AlgorithmTimeout,
    ExecutionNotFound,
)
from penstock.graphdb.algorithms.order import Order
from penstock.kit import logging
from penstock.kit.clock import SYSTEM
from penstock.kit.errors import InvalidInput, InvalidState, PenstockError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graph_server.algorithms.execution import Kind, Request
    from penstock.graph_server.algorithms.write_lock import WriteLock
    from penstock.graph_server.served_graph import Graph, Served
    from penstock.graphdb.algorithms.order import Computed, ValuesFile
    from penstock.kit.clock import Clock

log = logging.get(__name__)
_REMEMBERED = 1000
_RESULTS_KEPT = 20
"""With their long parts; of the others what is short."""


class Executions:
    def __init__(
        self,
        *,
        graph: Callable[[], Graph],
        lock: WriteLock,
        folder: Path,
        memory_bytes: int | None,
        threads: int = 1,
        at_once: int = 4,
        active: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM,
    ) -> None:
        """`graph` gives the loaded one or says why there is none; `memory_bytes` is what one child
        may use; `active` hears that somebody is at work."""
        self.graph = graph
        self._lock = lock
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._at_once = at_once
        self._active = active
        self._clock = clock
        self._children = Children(threads=threads)
        self._known: OrderedDict[str, Execution] = OrderedDict()
        self._extraction = Extraction(graph, folder / "graphs")

    @classmethod
    def of(cls, served: Served) -> Executions:
        """Children get the memory that the engine's cache leaves, and the instance's cores."""
        mine = served.settings
        return cls(
            graph=lambda: served.graph,
            lock=served.lock,
            folder=mine.dir / "algorithms",
            memory_bytes=mine.memory_bytes - mine.cache_bytes,
            threads=mine.cpu,
            active=served.tally.active,
        )

    @property
    def running(self) -> int:
        return sum(execution.status == "running" for execution in self._known.values())

    @property
    def child_pids(self) -> frozenset[int]:
        return self._children.pids

    @property
    def pids(self) -> frozenset[int]:
        """All processes that algorithms have."""
        forker = self._children.forker_pid
        return self.child_pids | (frozenset() if forker is None else {forker})

    def end_child(self, pid: int) -> None:
        """The execution that it computes for fails."""
        self._children.kill(pid)

    def elapsed(self, execution: Execution) -> float:
        return (
            execution.duration
            if execution.duration is not None
            else self._clock.monotonic() - execution.begun
        )

    def listed(self, kind: Kind) -> list[Execution]:
        """The newest first."""
        return [
            execution
            for execution in reversed(self._known.values())
            if execution.request.kind == kind
        ]

    def get(self, execution_id: str) -> Execution:
        if execution_id not in self._known:
            raise ExecutionNotFound(
                f"There is no execution {execution_id[:80]!r}.",
                hint=f"The last {_REMEMBERED} are remembered.",
            )
        return self._known[execution_id]

    async def warm(self) -> None:
        """Load the libraries before the first algorithm asks for them."""
        await self._children.warm()

    def start(self, request: Request) -> Execution:
        if self.running >= self._at_once:
            raise Unavailable(
                f"{self._at_once} algorithms run already.",
                hint="Wait for one, or cancel one.",
                limit=self._at_once,
            )
        execution = Execution(
            id=str(uuid4()),
            request=request,
            started_at=self._clock.now(),
            begun=self._clock.monotonic(),
        )
        if request.result_property is not None:
            self._lock.acquire(holding(execution))
        self._remember(execution)
        self._active()
        execution.task = asyncio.create_task(self._run(execution))
        return execution

    async def cancel(self, execution_id: str) -> Execution:
        execution = self.get(execution_id)
        if execution.status != "running" or execution.task is None:
            raise InvalidState(
                f"The execution is {execution.status} already.", status=execution.status
            )
        if not execution.writing:
            execution.task.cancel()
        await execution.ended.wait()
        return execution

    async def close(self) -> None:
        for execution in [e for e in self._known.values() if e.status == "running"]:
            await self.cancel(execution.id)
        await self._children.close()

    def _remember(self, execution: Execution) -> None:
        self._known[execution.id] = execution
        over = [e for e in self._known.values() if e.status != "running"]
        for old in over[: max(0, len(self._known) - _REMEMBERED)]:
            del self._known[old.id]
        for old in over[:-_RESULTS_KEPT]:
            old.result = brief(old.result)

    async def _run(self, execution: Execution) -> None:
        log.info("algorithm_started", execution_id=execution.id, algorithm=execution.request.name)
        try:
            await self._carry_out(execution)
            execution.status = "completed"
            execution.progress = 1.0
        except asyncio.CancelledError:
            execution.status, execution.error = (
                "cancelled",
                AlgorithmCancelled("The execution was cancelled."),
            )
        except PenstockError as e:
            execution.status, execution.error = "failed", e
        except Exception as e:
            log.exception("algorithm_broke", execution_id=execution.id, exc_info=e)
            execution.status = "failed"
            execution.error = AlgorithmFailed(
                f"{execution.request.name} failed: {type(e).__name__}."
            )
        finally:
            self._end(execution)

    def _end(self, execution: Execution) -> None:
        execution.duration = self._clock.monotonic() - execution.begun
        execution.completed_at = self._clock.now()
        self._lock.release(execution.id)
        self._active()
        shutil.rmtree(self._out(execution), ignore_errors=True)
        execution.ended.set()
        log.info(
            "algorithm_ended",
            execution_id=execution.id,
            algorithm=execution.request.name,
            status=execution.status,
            seconds=round(execution.duration, 3),
        )

    async def _carry_out(self, execution: Execution) -> None:
        timeout = execution.request.timeout
        try:
            async with asyncio.timeout(timeout):
                answer = await self._computed(execution)
        except TimeoutError:
            raise AlgorithmTimeout(
                f"{execution.request.name} took longer than {timeout:g} s and was stopped.",
                hint="Give it more time with timeout_ms, or choose a smaller part of the graph.",
                timeout_ms=int(timeout * 1000),
            ) from None
        execution.result = answer["result"]
        if execution.request.result_property is not None:
            await self._write_back(execution, answer["files"])

    async def _computed(self, execution: Execution) -> Computed:
        request, out = execution.request, self._out(execution)
        data = await self._extraction.folder(request.selection)
        out.mkdir(parents=True)
        order = Order(
            kind=request.kind,
            name=request.name,
            selection=request.selection,
            directed=request.directed,
            parameters=request.parameters,
            keep_values=request.result_property is None,
            memory_bytes=self._memory_bytes,
            data=data,
            out=out,
        )
        return await self._children.compute(execution.id, order, partial(_advance, execution))

    async def _write_back(self, execution: Execution, files: list[ValuesFile]) -> None:
        name = execution.request.result_property
        if not files:
            raise InvalidInput(
                (
                    f"{execution.request.name} gives a {execution.result.get('kind', 'value')}, "
                    "not one value per node."
                ),
                hint="Leave result_property out.",
                parameter="result_property",
            )
        graph = self.graph()
        execution.writing = True
        updated: dict[str, int] = {}
        for file in files:
            written = Written(
                label=file["label"], name=f"{name}{file['suffix']}", file=Path(file["path"])
            )
            rows = await graph.write_back(written)
            updated[file["label"]] = max(updated.get(file["label"], 0), rows)
        execution.nodes_updated = sum(updated.values())

    def _out(self, execution: Execution) -> Path:
        return self._folder / "executions" / execution.id


def _advance(execution: Execution, fraction: float) -> None:
    execution.progress = max(execution.progress, min(fraction, 0.99))
