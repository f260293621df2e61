"""What a launcher must do: run graph servers, and never lose sight of one.

A run is named by its `Handle`: an instance, and the number of the launch. A launcher keys
everything it makes by that name (a folder and a lock here, the names and labels of a pod there), so
that `start` said twice makes one process, and whoever takes over after a crash finds by `list` what
the last one made. A run happens once: after its end the same handle is never started again, `start`
with it changes nothing, and `inspect` tells how it ended until `remove`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    resume: bool
    """Whether a run that was stopped can be started again from its snapshot, so that idle ones may
    be suspended."""
    resize: bool
    """Whether CPU and memory of a run can be changed while it runs; else they count from its next
    launch."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Handle:
    instance_id: int
    launch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """`environment` is all that the server is told besides its own limits and place; nothing else
    reaches it.

    `secrets` are settings by the same names that no other process may read: a launcher hands them
    over, with the token, by a descriptor or a file, never by the environment or a command line.
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
    """Where the control plane reaches a server: a URL, and the socket behind it where there is one."""

    url: str
    socket: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended; `code` is negative for a signal and None when nobody saw it."""

    code: int | None = None
    oom: bool = False

    def __str__(self) -> str:
        if self.oom:
            return "it took more memory than it may"
        if self.code is None:
            return "it vanished"
        return f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A run that was begun; `ended` is None while it runs."""

    handle: Handle
    ended: Ended | None = None

    @property
    def alive(self) -> bool:
        return self.ended is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    memory_bytes: int
    disk_bytes: int


class Launcher(Protocol):
    @property
    def place(self) -> str:
        """Which machine or namespace this is; a control plane judges only what runs in its own
        place."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    async def start(self, order: LaunchRequest) -> None:
        """Begin the run; it is found by `list` when this returns. Said again it changes nothing."""
        ...

    async def stop(self, handle: Handle, *, grace: float) -> None:
        """End the run: asked politely, then after `grace` seconds not. It is over when this
        returns."""
        ...

    async def remove(self, handle: Handle) -> None:
        """Forget a run that is over, with its files; its log is kept for a while."""
        ...

    async def attend(self) -> None:
        """Said every few seconds by whoever looks after this place; runs that nobody attends to end
        in time."""
        ...

    async def inspect(self, handle: Handle) -> Found | None:
        """How a run is; None when it was never begun, or removed."""
        ...

    async def list(self) -> Sequence[Found]:
        """Every run that was begun here and not removed."""
        ...

    async def wait(self, handle: Handle) -> Ended:
        """Until the run is over."""
        ...

    async def usage(self, handle: Handle) -> Usage | None:
        """What a run takes now; None when it does not run."""
        ...

    async def logs(self, handle: Handle, *, tail: int) -> str:
        """The last `tail` bytes of what a run has said."""
        ...

    async def resize(self, handle: Handle, *, cpu_cores: int, memory_bytes: int) -> None: ...

    def address(self, handle: Handle) -> Address: ...

    def pod_name(self, handle: Handle) -> str | None:
        """What an operator looks for in the cluster; None where there are no pods."""
        ...
