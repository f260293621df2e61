"""Manages the child processes that compute algorithms: one fork server, started on first use."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from dataclasses import dataclass, field
from signal import SIGKILL, Signals
from typing import TYPE_CHECKING

import orjson

from penstock.graphdb.algorithms.errors import AlgorithmFailed
from penstock.kit.errors import PenstockError, rebuild

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable
    from pathlib import Path

    from penstock.graphdb.algorithms.fork_server import Report
    from penstock.graphdb.algorithms.order import Computed, Failure, Order

_MODULE = "penstock.graphdb.algorithms.fork_server"
_OWN = {
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    # Arrow's own pool takes a gibibyte at its first array, which the limit of a child would count
    # as used.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
_PASSED_ON = (
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",
)
_GONE = -int(SIGKILL)


@dataclass(slots=True)
class _Child:
    progress: Callable[[float], None]
    code: asyncio.Future[int]
    pid: int | None = None


@dataclass(slots=True)
class _ForkServer:
    """A fork server and its children; they end with it."""

    process: Process
    children: dict[str, _Child] = field(default_factory=dict)
    listening: asyncio.Task[None] | None = None

    def say(self, content: dict[str, str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(orjson.dumps(content) + b"\n")

    async def listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self._hear(orjson.loads(line))
        await self.process.wait()
        for name in list(self.children):
            self._hear({"id": name, "code": _GONE})

    def _hear(self, message: Report) -> None:
        child = self.children.get(message["id"])
        if child is None:
            return
        if "progress" in message:
            child.progress(message["progress"])
        elif "pid" in message:
            child.pid = message["pid"]
        elif not child.code.done():
            child.code.set_result(message["code"])


class Children:
    def __init__(self, *, threads: int) -> None:
        self._environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._environment |= _OWN | {"OMP_NUM_THREADS": str(threads)}
        self._nest: _ForkServer | None = None
        self._opening = asyncio.Lock()

    @property
    def pids(self) -> frozenset[int]:
        children = self._nest.children.values() if self._nest is not None else ()
        return frozenset(child.pid for child in children if child.pid is not None)

    @property
    def forker_pid(self) -> int | None:
        """The process that the children are forked from."""
        return None if self._nest is None else self._nest.process.pid

    def kill(self, pid: int) -> None:
        """Kill a child; its pending request fails with that error."""
        if self._nest is not None:
            for name, child in self._nest.children.items():
                if child.pid == pid:
                    self._nest.say({"kill": name})

    async def warm(self) -> None:
        """Start what the first order would have to wait for."""
        await self._opened()

    async def compute(self, name: str, order: Order, progress: Callable[[float], None]) -> Computed:
        """Return the child's result or raise its error; the child always ends."""
        nest = await self._opened()
        path = order.write()
        child = _Child(progress, asyncio.get_running_loop().create_future())
        nest.children[name] = child
        try:
            nest.say({"id": name, "order": str(path)})
            code = await asyncio.shield(child.code)
        finally:
            if not child.code.done():
                nest.say({"kill": name})
                await asyncio.shield(child.code)
            del nest.children[name]
        return await asyncio.to_thread(_answer, order.out, code, order.name)

    async def close(self) -> None:
        nest, self._nest = self._nest, None
        if nest is not None and nest.process.returncode is None:
            nest.process.kill()
            await nest.process.wait()
        if nest is not None and nest.listening is not None:
            await nest.listening

    async def _opened(self) -> _ForkServer:
        async with self._opening:
            if (
                self._nest is None
                or self._nest.process.returncode is not None
                or self._nest.listening is None
            ):
                self._nest = await self._open()
            return self._nest

    async def _open(self) -> _ForkServer:
        command = [sys.executable, "-P", "-m", _MODULE]
        process = await asyncio.create_subprocess_exec(
            *command, env=self._environment, stdin=PIPE, stdout=PIPE
        )
        nest = _ForkServer(process)
        nest.listening = asyncio.create_task(nest.listen())
        return nest


def _answer(out: Path, code: int, name: str) -> Computed:
    if (out / "result.json").exists():
        answer: Computed = orjson.loads((out / "result.json").read_bytes())
        return answer
    if (out / "error.json").exists():
        raise _raised(orjson.loads((out / "error.json").read_bytes()))
    if code == _GONE:
        raise AlgorithmFailed(
            f"The process that computed {name} was killed (signal 9).",
            hint=(
                "A machine short of memory does this: choose a smaller part of the graph or a "
                "larger instance."
            ),
        )
    how = f"by signal {Signals(-code).name}" if code < 0 else f"with code {code}"
    raise AlgorithmFailed(f"The process that computed {name} ended {how}.")


def _raised(message: Failure) -> PenstockError:
    return rebuild(
        message["code"], message["message"], hint=message["hint"], details=message["details"]
    )
