"""Interface of launchers, which run graph servers and never lose track of one.

A run is identified by its `Handle`: an instance and the number of the launch. A launcher derives
all names from it (a folder and a lock, or the name and labels of a pod), so `start` is idempotent,
and after a crash `list` finds everything that was started. A run happens once: after its end,
`start` with the same handle changes nothing, and `inspect` returns how it ended until `remove`.
A run that was stopped may be gone at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    resume: bool
    """Whether a stopped instance can be launched again, so that idle ones may be suspended."""
    resize: bool
    """Whether CPU and memory can be changed during a run; else from the next launch."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Handle:
    instance_id: int
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """`environment` is everything that the server gets besides its own limits and place.

    `secrets` are settings that no other process may read: a launcher passes them, with the token,
    by a descriptor or a file, never by the environment or the command line.
    """

    handle: Handle
    slug: str
    owner: str
    backend: str
    memory_bytes: int
    cpu_cores: int
    token: str = field(repr=False)
    control_plane_url: str
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The URL of a server for the control plane, and its Unix socket if it has one."""

    url: str
    socket: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended; `code` is negative for a signal and None if it is unknown.

    `cause` is a sentence of the launcher that says more than the code: an image that does not
    exist, a node that was lost.
    """

    code: int | None = None
    oom: bool = False
    cause: str | None = None

    def __str__(self) -> str:
        if self.oom:
            return "out of memory"
        if self.cause is not None:
            return self.cause
        if self.code is None:
            return "exit code unknown"
        return f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A run that was started; `ended` is None while it runs."""

    handle: Handle
    ended: Ended | None = None

    @property
    def alive(self) -> bool:
        return self.ended is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """`disk_bytes` is None if the launcher cannot measure it."""

    memory_bytes: int
    disk_bytes: int | None


class Launcher(Protocol):
    @property
    def place(self) -> str:
        """The machine or namespace; a control plane manages only runs in its own place."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    async def start(self, order: LaunchRequest) -> None:
        """Start the run; idempotent, and completes a start that was broken off. `list` includes it
        when this returns."""
        ...

    async def stop(self, handle: Handle, *, grace: float) -> None:
        """End the run: SIGTERM, then a kill after `grace` seconds; returns when it has ended."""
        ...

    async def remove(self, handle: Handle) -> None:
        """Delete an ended run with its files; its log is kept for a while."""
        ...

    async def attend(self) -> None:
        """Called every few seconds by the controller of this place; runs end by themselves if the
        calls stop for long."""
        ...

    async def inspect(self, handle: Handle) -> Found | None:
        """The state of a run; None if it was never started, or was removed."""
        ...

    async def list(self) -> Sequence[Found]:
        """Every run that was started here and not removed."""
        ...

    async def wait(self, handle: Handle) -> Ended:
        """Wait until the run has ended."""
        ...

    async def usage(self, handle: Handle) -> Usage | None:
        """Current memory and disk of a run; None if it is not running."""
        ...

    async def logs(self, handle: Handle, *, tail: int) -> str:
        """The last `tail` bytes of the log of a run."""
        ...

    async def resize(self, handle: Handle, *, cpu_cores: int, memory_bytes: int) -> None: ...

    def address(self, handle: Handle) -> Address:
        """Raises NoAddress while the run has none."""
        ...

    def pod_name(self, handle: Handle) -> str | None:
        """The pod of a run in the cluster; None if the launcher has no pods."""
        ...
