"""The engine process as seen by the server: started, given channels, interrupted, killed,
awaited."""

from __future__ import annotations

import asyncio
import mmap
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.graph_server.engine import wire
from penstock.graph_server.engine.process import CHANNEL, CONFINE, INTERRUPT, MOST_SLOTS, ORDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graph_server.isolation.permissions import Reach

_MODULE = "penstock.graph_server.engine.process"
_PASSED_ON = (
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",
)
_OWN = {
    # Freed memory goes back to the kernel, so that the limit counts what is in use.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "8",
    "MALLOC_MMAP_THRESHOLD_": str(1024 * 1024),
}


class EngineChild:
    """One engine process, from its start to its end. It ends once; `ended` is set then."""

    def __init__(self, backend: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        page = os.memfd_create("phases")
        os.ftruncate(page, MOST_SLOTS)
        self._phases = mmap.mmap(page, MOST_SLOTS)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        command = [sys.executable, "-P", "-m", _MODULE, backend, str(theirs.fileno()), str(page)]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            env=environment | _OWN,
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), page),
        )
        theirs.close()
        os.close(page)
        self._control = ours
        self._idle: deque[wire.Channel] = deque()
        self._slots = 0
        self.code: int | None = None
        self.ended = asyncio.Event()
        self.on_end: Callable[[], None] = lambda: None
        self._pidfd = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._bury)

    @property
    def pid(self) -> int:
        return self._process.pid

    def confine(self, reach: Reach) -> None:
        """Before the first channel: what the process gives up, all its threads lack."""
        self._order(CONFINE + pickle.dumps(reach))

    def take(self) -> wire.Channel:
        """An idle channel, or a new one."""
        if self._idle:
            return self._idle.pop()
        if self._slots >= MOST_SLOTS:
            raise wire.EngineGone
        ours, theirs = socket.socketpair()
        for sock in (ours, theirs):
            wire.widen(sock)
        ours.setblocking(False)
        slot, self._slots = self._slots, self._slots + 1
        with theirs:
            self._order(ORDER.pack(CHANNEL, slot, 0), theirs.fileno())
        return wire.Channel(ours, slot)

    def give_back(self, channel: wire.Channel) -> None:
        """After the last byte of a reply was read."""
        if self.code is None:
            self._idle.append(channel)
        else:
            channel.close()

    def interrupt(self, channel: wire.Channel) -> None:
        """Stop the request that the channel carries now."""
        self._order(ORDER.pack(INTERRUPT, channel.slot, channel.request))

    def phase(self, channel: wire.Channel) -> int:
        """What the channel's thread was last at, whether the process still answers or not."""
        return self._phases[channel.slot]

    def kill(self) -> None:
        if self.code is None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def close(self) -> None:
        self.kill()
        await self.ended.wait()

    def _order(self, order: bytes, *descriptors: int) -> None:
        with suppress(OSError):  # it is ending; who waits for it hears that from the channel
            socket.send_fds(self._control, [order], list(descriptors))

    def _bury(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.code = self._process.wait()
        self._control.close()
        while self._idle:
            self._idle.pop().close()
        self.on_end()
        self.ended.set()
