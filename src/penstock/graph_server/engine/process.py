"""The engine process: `python -m penstock.graph_server.engine.process BACKEND CONTROL PHASES`.

CONTROL and PHASES are descriptors: a socket with the server's orders, and one shared page where
each channel's thread says what it is at, readable even when this process no longer answers. The
first order says what the process may reach; it confines itself before it has a second thread. Later
orders open channels and interrupt what runs in one. The process has no secrets, dies with its
server, and is the first that a machine short of memory takes.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import traceback
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from penstock.graph_server.engine import wire
from penstock.graph_server.engine.engine_work import (
    CONVERTING,
    EXECUTING,
    IDLE,
    SENDING,
    Turn,
    Work,
)
from penstock.graph_server.queries.results import warm
from penstock.graphdb.registry import warm_up
from penstock.kit.errors import Internal, PenstockError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from penstock.graph_server.engine.engine_work import Phase
    from penstock.graph_server.isolation.permissions import Reach

CONFINE, CHANNEL, INTERRUPT = b"f", b"c", b"i"
ORDER = struct.Struct("!cHQ")
"""Which order, about which channel, and about which of its requests."""
MOST_SLOTS = 1024
ANSWERS = ("query", "stream", "subgraph")
"""The requests that come from clients."""
MOST_ORDER = 128 * 1024
_PR_SET_PDEATHSIG = 1
_STACK_BYTES = 8 * 1024**2 + 64 * 1024
"""Of a thread, mapped at once though little of it is ever used; the engine parses on it."""


class EngineProcess:
    def __init__(self, control: socket.socket, phases: mmap.mmap) -> None:
        self._control = control
        self._phases = phases
        self._work = Work()
        self._turns: dict[int, tuple[int, Turn]] = {}
        """What runs in each channel, and how many requests it has had with this one."""

    def run(self) -> None:
        while True:
            order, descriptors, _, _ = socket.recv_fds(self._control, MOST_ORDER, 1)
            if not order:
                return
            self._carry_out(order, descriptors)

    def _carry_out(self, order: bytes, descriptors: list[int]) -> None:
        kind = order[:1]
        if kind == CONFINE:
            reach: Reach = pickle.loads(order[1:])  # noqa: S301 - it comes from the server
            reach.confine()
            return
        _, slot, request = ORDER.unpack(order)
        if kind == CHANNEL:
            sock = socket.socket(fileno=descriptors[0])
            self._work.grant(_STACK_BYTES)
            threading.Thread(
                target=self._serve, args=(sock, slot), name=f"channel-{slot}", daemon=True
            ).start()
        elif kind == INTERRUPT:
            running, turn = self._turns.get(slot, (0, None))
            # An order that comes late must not stop the channel's next request.
            if turn is not None and running == request:
                turn.cord.pull()

    def _serve(self, sock: socket.socket, slot: int) -> None:
        """One request after the other, until the server closes the channel."""

        def tell(phase: Phase) -> None:
            self._phases[slot] = phase

        with sock, contextlib.suppress(wire.EngineGone, ConnectionError):
            count = 0
            while (request := wire.receive(sock)) is not None:
                count, turn = count + 1, Turn(tell)
                self._turns[slot] = (count, turn)
                tell(EXECUTING)
                try:
                    self._answer(sock, request, turn)
                finally:
                    tell(IDLE)
                    del self._turns[slot]

    def _answer(self, sock: socket.socket, request: wire.Request, turn: Turn) -> None:
        method = getattr(self._work, request.method)
        try:
            if request.method not in ANSWERS:
                wire.send(sock, wire.REPLY, orjson.dumps(method(**request.arguments)))
                return
            with self._work.accounted(limited=bool(request.arguments.pop("limited"))):
                if request.method == "stream":
                    _send_stream(sock, method, request.arguments, turn)
                else:
                    content = method(turn=turn, **request.arguments)
                    turn.tell(SENDING)
                    wire.send(sock, wire.REPLY, content)
        except PenstockError as e:
            wire.send_error(sock, e)
        except ConnectionError:
            raise
        except Exception as e:
            traceback.print_exc()
            wire.send_error(sock, Internal(f"{type(e).__name__}: {str(e)[:500]}"))


def _send_stream(
    sock: socket.socket,
    method: Callable[..., Iterator[memoryview | bytes]],
    arguments: dict[str, object],
    turn: Turn,
) -> None:
    for chunk in method(turn=turn, **arguments):
        turn.tell(SENDING)
        wire.send(sock, wire.CHUNK, chunk)
        turn.cord.check()
        turn.tell(CONVERTING)
    wire.send(sock, wire.END)


def _prepare() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # where /proc is closed to us, the server's limits must do
        Path("/proc/self/oom_score_adj").write_text("1000")


class _WithoutPandas:
    """Finds every module but pandas: Arrow and the engines' libraries import it wherever it is
    installed, for seconds and tens of megabytes, and nothing here is a data frame."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if name == "pandas" else PathFinder.find_spec(name, path, target)


def main() -> None:
    backend, control, phases = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    _prepare()
    threading.stack_size(8 * 1024**2)
    sys.meta_path[sys.meta_path.index(PathFinder)] = _WithoutPandas
    warm_up(backend)
    warm()
    with socket.socket(fileno=control) as orders, mmap.mmap(phases, MOST_SLOTS) as page:
        EngineProcess(orders, page).run()
    os._exit(0)


if __name__ == "__main__":
    main()
