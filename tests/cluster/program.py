"""A server of the cluster: a child of process 1, whose output is a file."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.cluster.failures import ClusterFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

HEALTHY_SECONDS = 180.0
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_LAST_LINES = 12


@dataclass(slots=True, kw_only=True)
class Program:
    name: str
    command: Sequence[str]
    logs: Path
    """The folder of all logs."""
    healthy: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        return self.logs / f"{self.name}.log"

    def start(self) -> float:
        """Returns when it is healthy, with the seconds that took."""
        started = time.monotonic()
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **self.environment},
            )
        wait_until(
            self.healthy, f"{self.name} is healthy", within=HEALTHY_SECONDS, meanwhile=self.check
        )
        return time.monotonic() - started

    def check(self) -> None:
        """Raises if it ended by itself."""
        if self._process is not None and (code := self._process.poll()) is not None:
            raise ClusterFailed(f"{self.name} ended with {code}:\n{self.last_lines()}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def last_lines(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:])


def wait_until(
    holds: Callable[[], bool],
    what: str,
    *,
    within: float,
    meanwhile: Callable[[], object] = lambda: None,
) -> float:
    """The seconds until it holds; raises with `what` when it does not in time."""
    started = time.monotonic()
    while not holds():
        meanwhile()
        if time.monotonic() - started > within:
            raise ClusterFailed(f"waited {within:.0f} s in vain until {what}")
        time.sleep(_LOOK_SECONDS)
    return time.monotonic() - started


def listens(port: int) -> bool:
    """Whether a server of this machine takes connections."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False
