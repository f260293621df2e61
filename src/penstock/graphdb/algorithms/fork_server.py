"""The fork server of algorithm runs: `python -m penstock.graphdb.algorithms.fork_server`.

Importing the libraries takes seconds, forking milliseconds, so this process imports them once,
while it is idle, and computes nothing itself: it has no threads, which would break a fork. It reads
lines of JSON (`order` with an `id`, or `kill` of one) and writes them (`progress`, then `code` when
a child has exited). It tracks which children it has reaped, so a kill never hits a reused pid. It
dies with the graph server, and its children die with it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import selectors
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import orjson

from penstock.graphdb.algorithms.child import carry_out
from penstock.graphdb.algorithms.order import Order

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_LIBRARIES = ("pandas", "networkx", "networkit", "sknetwork.topology")
"""Arrow imports pandas by itself wherever it is installed, at a child's first array."""
_PAUSE = 0.05
_READ_BYTES = 65536


class Report(TypedDict, total=False):
    """A line of the output: a child's `id` with its `pid`, its `progress` or its exit `code`."""

    id: str
    pid: int
    progress: float
    code: int


class ForkServer:
    def __init__(self, output: int) -> None:
        self._output = output
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ, None)
        self._children: dict[str, int] = {}
        self._to_import = list(_LIBRARIES)
        self._buffer = b""

    def run(self) -> None:
        while True:
            ready = self._selector.select(0 if self._to_import else None)
            if not ready:
                with suppress(ModuleNotFoundError):
                    import_module(self._to_import.pop(0))
                gc.freeze()
            for key, _ in ready:
                if key.data is not None:
                    self._reap(key.data, key.fd)
                elif not self._read_messages():
                    return

    def _read_messages(self) -> bool:
        received = os.read(0, _READ_BYTES)
        *lines, self._buffer = (self._buffer + received).split(b"\n")
        for line in lines:
            message = orjson.loads(line)
            if "kill" in message:
                self._kill(message["kill"])
            else:
                self._fork(message["id"], Path(message["order"]))
        return bool(received)

    def _fork(self, name: str, path: Path) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _child(parent, path, _reporter(self._output, name))
        self._children[name] = pid
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, name)
        _send(self._output, {"id": name, "pid": pid})

    def _kill(self, name: str) -> None:
        if name in self._children:
            os.kill(self._children[name], signal.SIGKILL)

    def _reap(self, name: str, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(self._children.pop(name), 0)
        _send(self._output, {"id": name, "code": os.waitstatus_to_exitcode(status)})


def _child(parent: int, path: Path, progress: Callable[[float], None]) -> None:
    code = 1
    try:
        _die_with_parent()
        if os.getppid() == parent:
            carry_out(Order.read(path), progress)
            code = 0
    finally:
        os._exit(code)


def _reporter(output: int, name: str) -> Callable[[float], None]:
    last = 0.0

    def report(fraction: float) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= _PAUSE:
            last = now
            _send(output, {"id": name, "progress": min(max(float(fraction), 0.0), 1.0)})

    return report


def _send(output: int, content: Report) -> None:
    """One write of less than PIPE_BUF, so that lines of several children do not interleave."""
    os.write(output, orjson.dumps(content) + b"\n")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def main() -> int:
    _die_with_parent()
    output = os.dup(1)
    os.dup2(2, 1)  # output of libraries goes to stderr
    ForkServer(output).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
