"""The priority of processes that compute for users: below the control plane and the database, which
everybody needs an answer from."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_STEPS = 4


def lower_priority() -> None:
    """Of this process and of those it starts; only what is idle anyway is as fast as before."""
    os.nice(_STEPS)
    # Where Linux schedules sessions as groups, a process's own number counts inside its group only.
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_STEPS))
